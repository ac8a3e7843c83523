"""What the project costs: each module measures one thing, and `suite` all of them."""
