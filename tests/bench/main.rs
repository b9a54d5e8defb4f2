//! What the hub costs: its ratios to bare servers that do the same without it, and its memory for a waiting task.
fn main() {}
