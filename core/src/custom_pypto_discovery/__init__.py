"""What is known of installed plugins before any of their code runs; standard library only."""
