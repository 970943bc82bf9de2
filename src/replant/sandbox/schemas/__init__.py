"""What definitions say of objects of their kinds: what they may hold, and what they hold unsaid.

``complete`` drops what nobody has declared and writes defaults; ``check`` tells what is wrong.
Schemas are as people wrote them: a part that makes no sense asks for nothing.
"""
