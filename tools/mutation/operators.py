"""Which mutants a source text has: every place in its functions that can be changed, one by one.

A mutant is the module's code with one node of its syntax tree replaced. Left out are what the
tests hold only loosely (the text of an error, f-strings), what does not run (annotations,
docstrings), and everything outside of functions: that has run before a mutant could be put in
its place.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import TypeVar

T = TypeVar("T")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[ast.AST, Callable[[ast.AST], None]]  # a node, and what puts another one there


def _both_ways(*pairs: tuple[T, T]) -> dict[T, T]:
    return dict(pairs) | {second: first for first, second in pairs}


OPERATORS = _both_ways(
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.LShift, ast.RShift), (ast.BitAnd, ast.BitOr)
) | {ast.BitXor: ast.BitAnd, ast.FloorDiv: ast.Div}
OPERATORS |= dict.fromkeys([ast.Mod, ast.Pow, ast.MatMult], ast.Mult)
COMPARISONS = _both_ways(
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
)
CALLS = _both_ways(("min", "max"), ("minimum", "maximum"), ("floor", "ceil"), ("any", "all"))
CALLS |= {"sorted": "list", "expm1": "exp", "log1p": "log", "bisect_right": "bisect_left"}
LEFT_OUT_FIELDS = {"annotation", "returns", "decorator_list"}
LEFT_OUT_INSIDE = (ast.Raise, ast.JoinedStr, ast.arg)


@dataclass(frozen=True)
class Mutant:
    line: int
    function: str  # the outermost one around the change, with its classes: "Monitor.count"
    before: str
    after: str
    code: CodeType  # of the whole module


def mutants(source: str, file: str) -> Iterator[Mutant]:
    tree = ast.parse(source)
    for name, function in _functions(tree):
        for node, put in _places(function, ("body",)):
            for new in _variants(node):
                put(ast.fix_missing_locations(ast.copy_location(new, node)))
                code = compile(tree, file, "exec")
                put(node)
                removed = getattr(new, "body", None) == [node]
                after = "(removed)" if removed else _first_line(new)
                line = getattr(node, "iter", node).lineno  # a comprehension has none
                yield Mutant(line, name, _first_line(node), after, code)


def _functions(node: ast.AST, within: str = "") -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield within + child.name, child
        else:
            is_class = isinstance(child, ast.ClassDef)
            yield from _functions(child, f"{within}{child.name}." if is_class else within)


def _places(node: ast.AST, fields: tuple[str, ...] = ()) -> Iterator[Place]:
    """All below a node, or below some of its fields."""
    if isinstance(node, LEFT_OUT_INSIDE) or _is_text(node):
        return
    for field in fields or node._fields:
        if field not in LEFT_OUT_FIELDS:
            for child, put in _children(node, field):
                yield child, put
                yield from _places(child)


def _children(node: ast.AST, field: str) -> Iterator[Place]:
    value = getattr(node, field, None)
    if isinstance(value, ast.AST):
        yield value, lambda new: setattr(node, field, new)
    elif isinstance(value, list):
        # The second argument of isinstance may be a union, whose | is no operation.
        end = 1 if field == "args" and _called(node) == "isinstance" else len(value)
        for i, child in enumerate(value[:end]):
            if isinstance(child, ast.AST):
                yield child, lambda new, i=i: value.__setitem__(i, new)


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            yield _with(node, op=OPERATORS[type(op)]())
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                yield _with(node, ops=[*ops[:i], COMPARISONS[type(op)](), *ops[i + 1 :]])
        case ast.BoolOp(op=op, values=values):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            for i in range(len(values)):
                rest = values[:i] + values[i + 1 :]
                yield _with(node, values=rest) if rest[1:] else _with(rest[0])
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            if not isinstance(operand, ast.Constant):  # which is changed itself
                yield _with(operand)
        case ast.Constant(value=value):
            yield from map(ast.Constant, _other_values(value))
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if not isinstance(test, ast.Constant):
                yield _with(node, test=ast.Constant(False))
                if not isinstance(node, ast.While):  # which would not end
                    yield _with(node, test=ast.Constant(True))
        case ast.comprehension(ifs=ifs):
            for i in range(len(ifs)):
                yield _with(node, ifs=ifs[:i] + ifs[i + 1 :])
        case ast.Return(value=ast.expr() as value):
            if not (isinstance(value, ast.Constant) and value.value is None):
                yield _with(node, value=ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Call(func=func, keywords=keywords):
            if (other := CALLS.get(_called(node))) is not None:
                field = "id" if isinstance(func, ast.Name) else "attr"
                yield _with(node, func=_with(func, **{field: other}))
            for i, keyword in enumerate(keywords):
                if keyword.arg is not None:
                    yield _with(node, keywords=keywords[:i] + keywords[i + 1 :])
    if _is_removable(node):
        # Not `pass`: a generator stays one, and a name stays local, if the statement is there.
        yield ast.If(test=ast.Constant(False), body=[node], orelse=[])


def _other_values(value: object) -> tuple[object, ...]:
    match value:
        case bool():
            return (not value,)
        case int():
            return value + 1, value - 1
        case float():
            return (value * 2, value / 2) if value else (1.0, -1.0)
        case str() | bytes() if value:
            return (("XX" if isinstance(value, str) else b"XX") + value,)
    return ()


def _is_removable(node: ast.AST) -> bool:
    """Without an assignment to a name, what comes after it would fail for want of the name."""
    if isinstance(node, ast.Assign):
        return not any(
            all(isinstance(name, ast.Name) for name in getattr(target, "elts", [target]))
            for target in node.targets
        )
    kinds = (ast.Expr, ast.AugAssign, ast.Raise, ast.Delete)
    return isinstance(node, kinds) and not _is_text(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _called(node: ast.AST) -> str:
    func = getattr(node, "func", None)
    return getattr(func, "id", getattr(func, "attr", ""))


def _with(node: ast.AST, **changes: object) -> ast.AST:
    """A copy with other fields. It shares its children, so the node itself stays as it is."""
    return ast.copy_location(type(node)(**(dict(ast.iter_fields(node)) | changes)), node)


def _first_line(node: ast.AST) -> str:
    """All of an expression; of an `if` its condition, which is what was changed."""
    return ast.unparse(node).strip().splitlines()[0]
