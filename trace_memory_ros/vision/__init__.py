"""What the pixels of a picture become: visual backbones, their weights, and the content encoder."""
