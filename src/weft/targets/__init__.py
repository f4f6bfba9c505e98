"""What Weft compiles for: facts about machines and their declared intrinsics."""
