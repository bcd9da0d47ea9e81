"""What the Python programs take from each other is there."""

import ast
import os

import tree


def defined(module):
    """The names that a module gives: at its top level, in `if`, `try` and loops as well."""
    names, queue = set(), list(module.body)
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        queue += ast.iter_child_nodes(node)
    return names


def taken(module, ours):
    """Module, name and line of what is taken from one of ours."""
    bound = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in ours:
                    bound[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in ours:
            for alias in node.names:
                yield node.module, alias.name, node.lineno
    hidden = {node.arg for node in ast.walk(module) if isinstance(node, ast.arg)}
    hidden |= {node.id for node in ast.walk(module)
               if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(module):
        if (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                and node.value.id in bound and node.value.id not in hidden):
            yield bound[node.value.id], node.attr, node.lineno


class Imports(tree.Lint):
    def test_each_name_is_in_the_module_that_it_is_taken_from(self):
        modules = {path: ast.parse(tree.read(path), path) for path in tree.files(".py")}
        ours = {}
        for path, module in modules.items():
            name = os.path.splitext(os.path.basename(path))[0]
            # two files of one name: what either gives
            ours.setdefault(name, {"__file__", "__doc__", "__name__"}).update(defined(module))
        self.assertGreater(len(ours), 100)
        wrong = [f"{path}:{line}: {source} has no {name}"
                 for path, module in modules.items()
                 for source, name, line in taken(module, ours)
                 if name != "*" and name not in ours[source]]
        self.none(wrong)
