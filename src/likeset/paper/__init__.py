"""The paper: its theory as numbers, and its evaluation again."""
