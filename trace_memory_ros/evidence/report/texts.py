"""What the page of an evaluation says about each of its parts, as HTML."""

MOMENTS = (
    "Every frame stands where it was seen on the time axis of the plots below it. A moment is judged by leaving it "
    "out, letting the memory go on, and comparing what the policy does at the branch: without what was written then "
    "(green), and, where the memory follows the driven path, as if the arm had stood still then (blue). Framed amber: "
    "the moment without which the action changes most. Framed red: the view at the decision itself."
)
ALL = (
    "A row is a decision. Dark: without what was written then the action at the branch is another. Ringed: without it, "
    "or without the path driven then, the policy takes another branch. Dark cells far to the left are earlier "
    "evidence; dark cells only at the right edge are the current view."
)
READS = (
    "A row is a decision, a column an entry of the memory. Where rows of different branches look alike, the evidence "
    "lies in what the entries hold and not in which one is read."
)
TRANSFORMS = (
    "The same episode, as if the robot had come along the same path in another way: the transform changes the state "
    "path that addresses the memory, never the pictures. Transforms that keep the order of the path should change "
    "little (green zone); reversing it should change much (red zone) where the path carries the evidence. Tasks whose "
    "cue is only seen, not driven, need not react to reversal."
)
STABILITY = (
    "The recorded history continued with more recorded driving before the same branch. Consistency is against the "
    "history as recorded; high churn with falling consistency means that evidence was overwritten."
)
TRANSFORM_CHART = (
    "Dots: means over episodes; bars: 95 % bootstrap intervals. Dotted: unrelated ticks of one history (left), "
    "and histories of episodes with different branches (right)."
)
