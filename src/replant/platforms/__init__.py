"""How gates are switched on each platform; ``execute.actuators`` says what is asked of them."""
