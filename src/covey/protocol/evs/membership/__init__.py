"""Who is here: hearing others, gathering, and the states of forming a view."""
