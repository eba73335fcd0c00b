#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""generate.py HEADER... TEMPLATE OUTPUT: makes the Fortran module of the C headers: constants, types, and an interface
for each function. What a header does not say, the shapes of operands, is in the table below.
"""
import re
import sys
import textwrap

# The operands of the routines. Of a matrix, how many columns it has; of a vector, how many elements. Those in brackets
# may be left out.
SHAPES = {
    "geqrf": "a:n tau:min(m,n) [info]",
    "orgqr": "a:n tau:k [info]",
    "ormqr": "a:k tau:k c:n [info]",
    "qr": "a:n q:min(m,n) r:n [info]",
    "geqr_r": "a:n r:n [info]",
    "gels": "a:n c:k [norms:k] [info]",
    "gels_refined": "a:n c:k [norms:k] [iterations:k] [relres:k] [info]",
    "r_range": "a:n range:2 [info]",
    "geqp3": "a:n tau:min(m,n) [jpvt:n] [rank] [c:k] [info]",
    "gelsy": "a:n c:k [jpvt:n] [rank] [info]",
    "pinv": "a:n c:m [w:m] [rank] [info]",
    "gesvd": "a:n s:min(m,n) [u:min(m,n)] [v:min(m,n)] [rank] [info]",
    "gesvdr": "a:n s:k u:k v:k [info]",
    "syevd": "a:n w:n [v:n] [info]",
    "syevr": "a:n w:n [v:n] [found] [info]",
    "trsm": "a:n c:k [info]",
}
OTHER_NAMES = {"ungqr": "orgqr", "unmqr": "ormqr", "heevd": "syevd", "heevr": "syevr"}  # of routines for complex types
MATRICES = ["a", "c", "q", "r", "u", "v"]  # of the batch's type, as is tau
REALS = ["norms", "range", "relres", "s", "w"]
INTEGERS = ["iterations", "jpvt", "rank", "found", "info"]
PLACES = {"q": "c", "w": "s", "found": "rank"}  # where the batch says how an operand is stored, if not under its name

LETTERS = {"s": "real(c_float)", "d": "real(c_double)", "c": "complex(c_float_complex)",
           "z": "complex(c_double_complex)"}
REAL_OF = {"s": "s", "d": "d", "c": "s", "z": "d"}
VALUES = {"int": "integer(c_int)", "int64_t": "integer(c_int64_t)", "uint64_t": "integer(c_int64_t)",
          "size_t": "integer(c_size_t)", "double": "real(c_double)", "batchqr_handle_t": "type(c_ptr)",
          "batchqr_plan_t": "type(c_ptr)", "batchqr_stream": "type(c_ptr)"}
STRUCTS = ["batchqr_storage", "batchqr_batch", "batchqr_operands", "batchqr_options"]
# Functions of the template; and a macro that differs from a function by its case alone, which Fortran does not see.
BY_HAND = ["batchqr_check_tuning_file"]
RENAMED = {"BATCHQR_VERSION": "BATCHQR_HEADER_VERSION"}


def value_type(c_type):
    """The Fortran type of a C value: a number, an enumerator, an address or a structure."""
    if c_type.endswith("*"):
        return "type(c_ptr)"
    if c_type in STRUCTS:
        return f"type({c_type})"
    return VALUES.get(c_type, "integer(c_int)")


def fold(line):
    """A line of Fortran, continued where it is too long."""
    indent = re.match(" *", line).group(0)
    lines = textwrap.wrap(line, 118, subsequent_indent=indent + "  ", break_long_words=False)
    return " &\n".join(lines)


def comment(text, indent):
    """A C comment as Fortran's."""
    body = re.sub(r"^/\*\*<?|\*/$", "", text, flags=re.M)
    lines = [re.sub(r"^\s*\* ?", "", line).strip() for line in body.strip().splitlines()]
    lines = [line.replace("#", "") for line in lines]
    return "\n".join(f"{indent}!> {line}".rstrip() for line in lines) + "\n" if lines else ""


# --- constants and types

REMARK = r"(?:\s*/\*\*<(.*?)\*/)?"  # what a constant or a field means, behind it


def remark(text):
    words = re.sub(r"\s*\n\s*", " ", text or "").replace("#", "").strip()
    return f"  !< {words}" if words else ""


def with_remark(line, text):
    """A declaration and what it means: on the line if there is room, else below."""
    if len(line + remark(text)) <= 118:
        return line + remark(text) + "\n"
    words = textwrap.wrap(remark(text).removeprefix("  !< "), 108)
    return line + "\n" + "".join(f"    !< {part}\n" for part in words)


def constants(text):
    lines = []
    for doc, body in re.findall(r"(/\*\*(?:(?!\*/).)*?\*/)\s*(?:typedef )?enum\b[^{;]*\{([^}]*)\}", text, flags=re.S):
        lines.append(comment(doc, "  "))
        for name, value, meaning in re.findall(r"(\w+)\s*=\s*(-?\d+),?" + REMARK, body, flags=re.S):
            lines.append(with_remark(f"  integer(c_int), parameter, public :: {name} = {value}", meaning))
        lines.append("\n")
    numbers = dict(re.findall(r"#define (BATCHQR_VERSION_\w+) (\d+)", text))
    for name, value in re.findall(r"#define (BATCHQR_VERSION\w*) (\S.*)", text):
        value = re.sub(r"BATCHQR_VERSION_\w+", lambda part: numbers[part.group(0)], value)
        lines.append(f"  integer(c_int), parameter, public :: {RENAMED.get(name, name)} = {value}\n")
    return "".join(lines)


def fields(c_type, names):
    """The declarations of a structure's fields of one type, with the zeros that all begin with."""
    for name in names.split(","):
        fortran = value_type(c_type + "*" * name.count("*"))
        name = re.sub(r"\[(\d+)\]", r"(\1)", name.replace("*", "").strip())
        start = {"type(c_ptr)": "c_null_ptr", "real(c_double)": "0.0_c_double"}.get(fortran, "0")
        yield f"    {fortran} :: {name}" + ("" if c_type in STRUCTS else " = " + start)


def structure(name, doc, body):
    lines = []
    for c_type, names, meaning in re.findall(r"((?:const )?\w+)\s+([^;/]+);" + REMARK, body, flags=re.S):
        declarations = list(fields(c_type, names))
        lines += [line + "\n" for line in declarations[:-1]] + [with_remark(declarations[-1], meaning)]
    return f"{comment(doc, '  ')}  type, bind(c), public :: {name}\n{''.join(lines)}  end type\n"


def types(text):
    found = re.findall(r"(/\*\*(?:(?!\*/).)*?\*/)\s*typedef struct (\w+) \{(.*?)\n\} \2;", text, flags=re.S)
    return "\n".join(structure(name, doc, body) for doc, name, body in found) + "\n"


# --- functions


class Function:
    """A function of the header: comment, C return type, name, and arguments as (C type, name)."""

    def __init__(self, doc, result, name, arguments):
        self.doc, self.result, self.name = doc, result, name
        self.arguments = []
        for argument in re.sub(r"\s+", " ", arguments).split(","):
            if argument.strip() != "void":
                c_type, argument = re.match(r"(.*?)(\w+)$", argument.strip()).groups()
                self.arguments.append((c_type.strip(), argument))

    def body(self, specific, declarations, names=None):
        """An interface body: declarations of the arguments, which are `names` in Fortran."""
        names = names or [name for _, name in self.arguments]
        kind, result = ("subroutine", "") if self.result == "void" else ("function", " result(returned)")
        lines = [f"{kind} {specific}({', '.join(names)}) bind(c, name='{self.name}'){result}", "  import"]
        lines += ["  " + declaration for declaration in declarations]
        if self.result != "void":
            lines.append(f"  {value_type(self.result)} :: returned")
        return "".join(fold("    " + line) + "\n" for line in lines + [f"end {kind}"])


def functions(text):
    found = re.findall(r"(/\*\*(?:(?!\*/).)*?\*/\s*)?BATCHQR_API ([^;(]*?)(\w+)\(([^;]*?)\);", text, flags=re.S)
    return [Function(doc, result.strip(), name, arguments) for doc, result, name, arguments in found]


def plain(c_type, name):
    """The declaration of an argument that is no operand."""
    bare = c_type.replace("const ", "").rstrip("* ")
    if c_type == "void *" or not c_type.endswith("*"):
        return f"{value_type(c_type)}, value :: {name}"
    optional = ", optional" if bare == "batchqr_options" else ""
    intent = "in" if c_type.startswith("const") else "out"
    return f"{value_type(bare)}, intent({intent}){optional} :: {name}"


def interface(generic, bodies, doc=""):
    return f"{comment(doc, '  ')}  public :: {generic}\n  interface {generic}\n{''.join(bodies)}  end interface\n"


def shapes_of(routine):
    """Of each operand in the table, how many columns or elements it has and whether it may be left out."""
    if routine not in SHAPES:
        sys.exit(f"generate.py: SHAPES says nothing of the operands of {routine}")
    words = [(word.strip("[]").partition(":"), word.startswith("[")) for word in SHAPES[routine].split()]
    return {name: (columns, optional) for (name, _, columns), optional in words}


class Operand:
    """An operand of a routine: its shape, one dimension for each index, and what else a declaration says."""

    def __init__(self, name, constant, ld, stride, columns, optional):
        self.name, self.optional = name, optional
        self.intent = "in" if constant else "inout"
        self.shape = f"{ld}, {columns}, *" if name in MATRICES else f"{stride}, *" if columns else "*"

    def declare(self, fortran, shape):
        optional = ", optional" if self.optional else ""
        return f"{fortran}, intent({self.intent}){optional} :: {self.name}({shape})"

    def typed(self, letter, shaped):
        fortran = "integer(c_int)" if self.name in INTEGERS else LETTERS[
            REAL_OF[letter] if self.name in REALS else letter]
        return self.declare(fortran, self.shape if shaped else "*")

    def address(self):
        return f"type(c_ptr), value :: {self.name}"

    def addresses(self):
        """An array of addresses; info is an array of integers even then."""
        if self.name == "info":
            return self.typed("s", False)
        optional = ", optional" if self.optional else ""
        return f"type(c_ptr), intent(in){optional} :: {self.name}(*)"


def arguments_with(function, operands, form):
    """The declarations of all arguments: those that shapes are made of, then the operands in the form wanted."""
    names = [operand.name for operand in operands]
    others = [plain(c_type, name) for c_type, name in function.arguments if name not in names]
    return others + [form(operand) for operand in operands]


def routine(function):
    """A routine that takes void pointers: for each type, operands of their natural shape and of one dimension;
    addresses; arrays of addresses."""
    stem = function.name.removeprefix("batch_")
    shapes = shapes_of(OTHER_NAMES.get(stem, stem))
    operands = []
    for c_type, name in function.arguments:
        if name in shapes:
            columns, optional = shapes[name]
            columns = re.sub(r"\b[mnk]\b", lambda size: "batch%" + size.group(0), columns)
            storage = "batch%" + PLACES.get(name, name)
            operands.append(Operand(name, c_type.startswith("const"), storage + "%ld", storage + "%stride", columns,
                                    optional))
    if len(operands) != len(shapes):
        sys.exit(f"generate.py: the table says {list(shapes)}, {function.name} has {function.arguments}")
    forms = {}
    for letter in LETTERS:
        forms[f"_{letter}_shaped"] = lambda o, letter=letter: o.typed(letter, True)
        forms[f"_{letter}"] = lambda o, letter=letter: o.typed(letter, False)
    forms["_address"] = Operand.address
    forms["_addresses"] = Operand.addresses
    bodies = [function.body(function.name + suffix, arguments_with(function, operands, form))
              for suffix, form in forms.items()]
    return interface(function.name, bodies, function.doc)


def wrapper(function, letter, stem):
    """The typed wrapper of a routine: strided operands by shape, of one dimension or by address; or arrays of
    addresses, or their address. Returns its interface and the names of the forms that know their type."""
    shapes = shapes_of(stem)
    operands = []
    for c_type, name in function.arguments:
        if "*" in c_type:
            bare = name.removesuffix("_array")
            operands.append(Operand(name, c_type.startswith("const"), "ld" + name, "stride_" + name, *shapes[bare]))
    if function.name.endswith("_strided"):
        forms = {"_shaped": lambda o: o.typed(letter, True), "_flat": lambda o: o.typed(letter, False)}
    else:
        forms = {"_addresses": Operand.addresses}
    bodies = [function.body(function.name + suffix, arguments_with(function, operands, form))
              for suffix, form in (forms | {"_address": Operand.address}).items()]
    typed = [function.name + suffix for suffix in forms if suffix != "_addresses"]
    return interface(function.name, bodies, function.doc), typed


def other(function):
    """A function of handles and plans; its interface, and a Fortran function where it returns a text."""
    declarations = [plain(c_type, name) for c_type, name in function.arguments]
    if function.result != "const char *":
        return interface(function.name, [function.body(function.name + "_c", declarations)], function.doc), ""
    name, private = function.name, function.name.removeprefix("batchqr_") + "_c"
    arguments = ", ".join(argument for _, argument in function.arguments)
    body = function.body(private, declarations)
    text = comment(function.doc, "  ") + textwrap.indent(
        f"function {name}({arguments}) result(text)\n"
        + "".join(f"  {declaration.replace(', value', ', intent(in)')}\n" for declaration in declarations)
        + f"  character(:), allocatable :: text\n  text = text_at({private}({arguments}))\nend function\n\n", "  ")
    return f"  public :: {name}\n  interface\n{body}  end interface\n", text


def module(header, template):
    interfaces, texts, generics = [], [], {}
    for function in functions(header):
        if function.name in BY_HAND:
            continue
        if not function.name.startswith("batch_"):
            done, text = other(function)
            texts.append(text)
        elif any(name == "batch" for _, name in function.arguments):
            done = routine(function)
        else:
            letter, stem = re.match(r"batch_(.)(\w+?)(?:_strided)?$", function.name).groups()
            stem = OTHER_NAMES.get(stem, stem)
            done, typed = wrapper(function, letter, stem)
            generics.setdefault(f"batch_{stem}_strided", []).extend(typed)
        interfaces.append(done)
    for generic, specifics in generics.items():
        names = fold("    procedure " + ", ".join(specifics)) + "\n"
        interfaces.append("  !> The wrappers of this name for the four types.\n" + interface(generic, [names]))
    parts = {"constants": constants(header), "types": types(header), "interfaces": "\n".join(interfaces),
             "texts": "".join(texts)}
    return re.sub(r"^@(\w+)@\n", lambda part: parts[part.group(1)], template, flags=re.M)


def main():
    *headers, template, output = sys.argv[1:]
    texts = []
    for path in headers + [template]:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    with open(output, "w", encoding="utf-8") as file:
        file.write(module("".join(texts[:-1]), texts[-1]))


if __name__ == "__main__":
    main()
