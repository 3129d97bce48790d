"""Labs on services: a text service that really runs, where its time goes, services to reason about, load."""
