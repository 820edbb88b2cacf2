"""The paper: its theory as numbers, its evaluation again, and a tour."""
