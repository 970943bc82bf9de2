"""Every change of one place in a module that a mutation makes, from its syntax tree.

A mutant is named by its file, its function and the text that changes, not by a line number, so
that its name stays when other code is edited.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Path = tuple[tuple[str, int | None], ...]
"""How to get from a tree to a node: the field at each step, and the index where it is a list."""

SETS = {
    "Side": ("IN_TREE", "CSI", "NOBODY"),
    "Hold": ("FREE", "HELD", "LETTING_GO", "UNNOTICED", "UNCERTAIN"),
    "Pod": ("ABSENT", "WAITING", "RUNNING"),
}
"""Enumerations: each member is replaced by each other one."""
NAMES = {
    "IN_TREE": ("CSI",), "CSI": ("IN_TREE",), "NONE": ("BOTH",), "BOTH": ("NONE",),
    "_IN_TREE": ("_CSI", "_NOBODY"), "_CSI": ("_IN_TREE", "_NOBODY"),
    "_NOBODY": ("_IN_TREE", "_CSI"), "any": ("all",), "all": ("any",), "max": ("min",),
    "min": ("max",),
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
}  # fmt: skip
BITWISE: dict[type[ast.operator], type[ast.operator]] = {
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
TRUE, FALSE = ast.Constant(True), ast.Constant(False)


@dataclass(frozen=True)
class Mutant:
    """One change of one place."""

    file: str
    """Below src/replant."""
    function: str
    """The function, or the name that is given a value at the module's top."""
    old: str
    new: str
    number: int
    """The how manieth of those that change the same text in the same way in this function."""
    tree: ast.Module
    path: Path
    replacement: ast.AST | None
    """What stands there instead; an element that is dropped has none."""

    @property
    def id(self) -> str:
        again = f" [{self.number}]" if self.number > 1 else ""
        return f"{self.file} {self.function}: {self.old} -> {self.new}{again}"

    def module(self) -> ast.Module:
        """The module with the change."""
        tree = copy.deepcopy(self.tree)
        node: ast.AST = tree
        for field, index in self.path[:-1]:
            found = getattr(node, field)
            node = found if index is None else found[index]
        field, index = self.path[-1]
        if index is None:
            setattr(node, field, self.replacement)
        elif self.replacement is None:
            _drop(node, field, index)
        else:
            getattr(node, field)[index] = self.replacement
        return ast.fix_missing_locations(tree)


def _drop(node: ast.AST, field: str, index: int) -> None:
    del getattr(node, field)[index]
    if isinstance(node, ast.Dict):
        del node.values[index]


def mutants(file: str, source: str, chosen: Callable[[str], bool]) -> list[Mutant]:
    """All mutants of the functions and top-level names of a module that are chosen."""
    tree = ast.parse(source)
    counts: Counter[tuple[str, str, str]] = Counter()
    found = []
    for name, node, path in _places(tree):
        if not chosen(name):
            continue
        for where, above, old, replacement in _changes(node, path):
            new = _text(replacement) if replacement else "dropped"
            if _text(old) == new:
                continue
            key = (name, _text(old), new + _context(old, above))
            counts[key] += 1
            found.append(Mutant(file, *key, counts[key], tree, where, replacement))
    return found


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:60]} … {text[-27:]}"


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.AST, Path]]:
    """Functions, methods, and values of top-level names."""
    for number, node in enumerate(tree.body):
        path: Path = (("body", number),)
        match node:
            case ast.FunctionDef():
                yield node.name, node, path
            case ast.ClassDef():
                for inner, method in enumerate(node.body):
                    if isinstance(method, ast.FunctionDef):
                        yield f"{node.name}.{method.name}", method, (*path, ("body", inner))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node, path


def _context(old: ast.AST, above: Sequence[ast.AST]) -> str:
    """What a bare name or constant is part of: by itself it says too little."""
    if not isinstance(old, ast.Name | ast.Attribute | ast.Constant):
        return ""
    around = [it for it in above if isinstance(it, ast.expr | ast.stmt)]
    return f" in {_text(around[-1])}" if around else ""


Change = tuple[Path, Sequence[ast.AST], ast.AST, ast.AST | None]


def _changes(place: ast.AST, path: Path) -> Iterator[Change]:
    strings = sorted(set(_names_of_rules(place)))
    for node, where, above in _walk(place, path, ()):
        for replacement in _replacements(node, above, strings):
            yield where, above, node, replacement
        for element, replaced in _elements(node, where):
            yield element, (*above, node), replaced, None


def _walk(
    node: ast.AST, path: Path, above: tuple[ast.AST, ...]
) -> Iterator[tuple[ast.AST, Path, tuple[ast.AST, ...]]]:
    """All that may be changed below a node: no documentation, annotations or words."""
    yield node, path, above
    if isinstance(node, ast.JoinedStr) or _is_documentation(node):
        return
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "args", "op", "ops", "ctx"} and (
            field != "args" or isinstance(node, ast.FunctionDef)
        ):
            continue
        below = value if isinstance(value, list) else [value]
        for number, it in enumerate(below):
            if isinstance(it, ast.AST) and not _only_tells(node, field, number):
                step = (field, number if isinstance(value, list) else None)
                yield from _walk(it, (*path, step), (*above, node))


def _is_documentation(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _only_tells(node: ast.AST, field: str, number: int) -> bool:
    """Whether it is what an event is called in a story, or a rule's sentence."""
    match node:
        case ast.Call(func=ast.Name(id="Event")):
            return field == "args" and number < 3  # the act, its node, its side
        case ast.Call(func=ast.Name(id="_Stated")):
            return field == "args" and number == 1
    return False


def _names_of_rules(place: ast.AST) -> Iterator[str]:
    for node, _path, above in _walk(place, (), ()):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_a_rule(above):
            yield node.value


def _is_a_rule(above: Sequence[ast.AST]) -> bool:
    """Whether a string says which rule applies: it is returned, assigned or handed on."""
    return isinstance(above[-1], ast.Return | ast.IfExp | ast.Assign) or (
        isinstance(above[-1], ast.Call)
        and isinstance(above[-1].func, ast.Name)
        and above[-1].func.id in {"route", "in_tree_route", "_by_driver"}
    )


def _replacements(
    node: ast.AST, above: Sequence[ast.AST], strings: Sequence[str]
) -> Iterator[ast.AST]:
    whole = bool(above) and _is_test(node, above[-1])
    match node:
        case ast.Compare():
            yield from _comparisons(node, whole=whole)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            yield from _each_left_out(op, values)
        case ast.UnaryOp(operand=operand) if not whole:
            yield operand
        case ast.BinOp():
            yield from _operations(node)
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.comprehension(target=target, iter=it, ifs=[_, *_]):
            yield ast.comprehension(target, it, [], 0)
        case ast.stmt():
            yield from _statements(node)
        case ast.Call():
            yield from _calls(node)
        case ast.expr():
            yield from _values(node, strings if above and _is_a_rule(above) else ())


def _comparisons(node: ast.Compare, *, whole: bool) -> Iterator[ast.AST]:
    for number, op in enumerate(node.ops):
        others = COMPARED[type(op)]
        # Of a whole condition, true and false take the place: its opposite is no third thing.
        for other in others[:-1] if whole else others:
            changed = [*node.ops[:number], other(), *node.ops[number + 1 :]]
            yield ast.Compare(node.left, changed, node.comparators)


def _operations(node: ast.BinOp) -> Iterator[ast.AST]:
    if type(node.op) in BITWISE:
        yield ast.BinOp(node.left, BITWISE[type(node.op)](), node.right)
        if isinstance(node.right, ast.UnaryOp):
            yield node.left
    elif isinstance(node.op, ast.Mult):
        yield node.right
    elif isinstance(node.op, ast.Add):
        yield node.left


def _statements(node: ast.stmt) -> Iterator[ast.AST]:
    match node:
        case ast.If(body=body, orelse=orelse):
            yield ast.If(TRUE, body, orelse)
            yield ast.If(FALSE, body, orelse)
        case (
            ast.Expr(value=ast.Yield() | ast.YieldFrom())
            | ast.AugAssign()
            | ast.Continue()
            | ast.Assign(targets=[ast.Subscript()])
        ):
            yield ast.Pass()


def _values(node: ast.expr, rules: Sequence[str]) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=str(name)) if name in rules and len(rules) > 1:
            yield ast.Constant(rules[(rules.index(name) + 1) % len(rules)])
        case ast.Attribute(value=ast.Name(id=kind), attr=member) if kind in SETS:
            for other in SETS[kind]:
                if other != member:
                    yield ast.Attribute(ast.Name(kind, ast.Load()), other, ast.Load())
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            for other in NAMES[name]:
                yield ast.Name(other, ast.Load())


def _each_left_out(op: ast.boolop, values: list[ast.expr]) -> Iterator[ast.AST]:
    for number in range(len(values)):
        rest = [*values[:number], *values[number + 1 :]]
        yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    match node:
        case ast.Call(func=ast.Name(id="Version"), args=[*first, ast.Constant(value=int(last))]):
            for other in (last - 1, last + 1):
                yield ast.Call(node.func, [*first, ast.Constant(other)], [])
        case ast.Call(func=ast.Name(id="Event"), args=[*first, ast.Name() as yanks]) if (
            len(node.args) > 4
        ):  # its fifth argument says whether the event takes a disk away
            yield ast.Call(node.func, [*first, ast.UnaryOp(ast.Not(), yanks)], [])
        case ast.Call(func=ast.Attribute(attr="_replace") | ast.Name(id="replace")):
            for number in range(len(node.keywords)):
                kept = [*node.keywords[:number], *node.keywords[number + 1 :]]
                yield ast.Call(node.func, node.args, kept)


def _elements(node: ast.AST, where: Path) -> Iterator[tuple[Path, ast.AST]]:
    """What a table has: each entry can be dropped."""
    match node:
        case ast.Dict(keys=keys):
            for number, key in enumerate(keys):
                if isinstance(key, ast.Constant) and key.value:
                    yield (*where, ("keys", number)), key
        case ast.Set(elts=elements) if len(elements) > 1:
            for number, element in enumerate(elements):
                yield (*where, ("elts", number)), element
        case ast.Tuple(elts=elements, ctx=ast.Load()) if len(elements) > 1 and all(
            isinstance(it, ast.Constant | ast.Attribute | ast.Name | ast.Call) for it in elements
        ):
            for number, element in enumerate(elements):
                yield (*where, ("elts", number)), element


def _is_test(node: ast.AST, above: ast.AST) -> bool:
    """Whether it is a whole condition, which is replaced by true and by false already."""
    return isinstance(above, ast.If | ast.IfExp) and above.test is node
