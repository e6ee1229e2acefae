"""What the memory is trained under before there is a policy; nothing of it is kept."""
