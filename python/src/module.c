/* The module, its named tuples and its errors. */
#include "binding.h"

#include <base/api.h>

PyTypeObject *binding_key, *binding_module, *binding_command, *binding_verdict, *binding_finding,
    *binding_salvage, *binding_loss;
static PyObject *error_type;

/* ---- errors ---- */

static bool set_field(PyObject *error, const char *name, PyObject *value)
{
    bool ok = value != NULL && PyObject_SetAttrString(error, name, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static PyObject *context(const struct rd_err *err)
{
    PyObject *lines = PyList_New(0);
    for (unsigned i = 0; lines != NULL && i < err->n_doing; i++) {
        PyObject *line = binding_text(err->doing[i]);
        if (line == NULL || PyList_Append(lines, line) != 0)
            Py_CLEAR(lines);
        Py_XDECREF(line);
    }
    return lines;
}

PyObject *binding_error(const struct rd_err *err)
{
    char line[2 * RD_ERR_TEXT_MAX + 100];
    if (err->code == RD_ERR_OK)
        Py_RETURN_NONE;
    PyObject *text = binding_text(rd_err_render(err, line, sizeof line));
    PyObject *error = text != NULL ? PyObject_CallOneArg(error_type, text) : NULL;
    Py_XDECREF(text);
    if (error == NULL)
        return NULL;
    if (set_field(error, "code", binding_text(rd_err_word(err->code))) &&
        set_field(error, "reason", binding_text(err->text)) &&
        set_field(error, "offset", binding_count(err->offset)) &&
        set_field(error, "inner",
                  err->inner == RD_NO_OFFSET || err->offset == RD_NO_OFFSET
                      ? Py_NewRef(Py_None)
                      : binding_count(err->inner)) &&
        set_field(error, "errno", PyLong_FromLong(err->sys)) &&
        set_field(error, "origin", binding_text(err->origin)) &&
        set_field(error, "context", context(err)))
        return error;
    Py_DECREF(error);
    return NULL;
}

PyObject *binding_raise(const struct rd_err *err)
{
    PyObject *error = err->code == RD_ERR_MEMORY ? PyErr_NoMemory() : binding_error(err);
    if (error != NULL)
        PyErr_SetObject(error_type, error);
    Py_XDECREF(error);
    return NULL;
}

/* ---- values for Python ---- */

PyObject *binding_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

PyObject *binding_bytes(struct rd_slice bytes)
{
    return PyBytes_FromStringAndSize((const char *)bytes.ptr, (Py_ssize_t)bytes.len);
}

PyObject *binding_count(uint64_t count)
{
    return count == RD_NO_OFFSET ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(count);
}

PyObject *binding_time(int64_t ms)
{
    return ms == RDB_NO_EXPIRE ? Py_NewRef(Py_None) : PyLong_FromLongLong(ms);
}

PyObject *binding_tuple(PyTypeObject *type, PyObject *const *items, Py_ssize_t n)
{
    PyObject *tuple = PyStructSequence_New(type);
    bool ok = tuple != NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        ok = ok && items[i] != NULL;
        if (tuple != NULL)
            PyStructSequence_SetItem(tuple, i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (ok)
        return tuple;
    Py_XDECREF(tuple);
    return NULL;
}

/* ---- the module ---- */

static PyStructSequence_Field key_fields[] = {
    {"db", "number of the database"},
    {"name", "name, as bytes"},
    {"type", "string, list, set, zset, hash, stream, module or array"},
    {"encoding", "encoding in the file"},
    {"expires_ms", "unix time in milliseconds, or None"},
    {"idle_s", "seconds since the last access, or None"},
    {"freq", "access frequency, or None"},
    {"size", "bytes of the value in the file, or None without values"},
    {"value", "value, or None without values"},
    {"field_expires_ms", "dict of the fields of a hash that expire, or None"},
    {"offset", "of the record in the file"},
    {NULL, NULL},
};
static PyStructSequence_Field module_fields[] = {
    {"name", "name of the type of the module"},
    {"version", "version of its encoding"},
    {NULL, NULL},
};
static PyStructSequence_Field command_fields[] = {
    {"args", "tuple of bytes"},       {"db", "selected database"},
    {"time_s", "unix time, or None"}, {"file", "name of the file"},
    {"offset", "in the file"},        {"number", "of the command in the log, from 1"},
    {"in_multi", "in a transaction"}, {NULL, NULL},
};
static PyStructSequence_Field verdict_fields[] = {
    {"sound", "nothing is damaged, and the checksum matches if there is one"},
    {"error", "redoubt.Error of the damage, or None"},
    {"dialect", "redis or valkey, or None"},
    {"version", "RDB version, or None"},
    {"checksum", "unknown, none, off, ok or bad"},
    {"keys", "keys, with the one that is damaged"},
    {"expires", "of them, those that expire"},
    {"errors", "findings by severity"},
    {"warnings", "findings by severity"},
    {"findings", "list of Finding"},
    {"end", "offset after the snapshot, or where reading stopped"},
    {NULL, NULL},
};
static PyStructSequence_Field finding_fields[] = {
    {"word", "stable word"},
    {"severity", "info, warning or error"},
    {"offset", "in the file"},
    {"db", "database"},
    {"key", "bytes, or None"},
    {"text", "for people"},
    {NULL, NULL},
};
static PyStructSequence_Field salvage_fields[] = {
    {"keys", "keys that were saved"},
    {"keys_partial", "of them, those that were cut"},
    {"keys_dropped", "keys that servers would refuse"},
    {"keys_doubted", "of the saved ones, those that may be wrong"},
    {"keys_left_out", "keys without enough evidence"},
    {"ranges", "lost ranges"},
    {"bytes_lost", "bytes in them"},
    {"first_loss", "offset, or None"},
    {"proved", "the checksum proves the result"},
    {"corrected", "the checksum showed what was wrong"},
    {"losses", "list of Loss"},
    {NULL, NULL},
};
static PyStructSequence_Field loss_fields[] = {
    {"kind", "range, key or partial"}, {"start", "offset"}, {"end", "offset"}, {"why", "cause"},
    {"key", "bytes or None"},          {NULL, NULL},
};

static PyStructSequence_Desc descriptions[] = {
    {"redoubt.Key", "A key of a snapshot.", key_fields, 11},
    {"redoubt.Module", "The value of a module, which is not decoded.", module_fields, 2},
    {"redoubt.Command", "A command of a log.", command_fields, 7},
    {"redoubt.Verdict", "What a check found.", verdict_fields, 11},
    {"redoubt.Finding", "A problem in a snapshot.", finding_fields, 6},
    {"redoubt.Salvage", "What was saved.", salvage_fields, 11},
    {"redoubt.Loss", "What was not saved.", loss_fields, 5},
};
static PyTypeObject **const types[] = {&binding_key,     &binding_module,  &binding_command,
                                       &binding_verdict, &binding_finding, &binding_salvage,
                                       &binding_loss};

static bool add_types(PyObject *module)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *types[i] = PyStructSequence_NewType(&descriptions[i]);
        if (*types[i] == NULL ||
            PyModule_AddObjectRef(module, strchr(descriptions[i].name, '.') + 1,
                                  (PyObject *)*types[i]) != 0)
            return false;
    }
    return true;
}

#define FUNCTION(name, function, text)                                                             \
    {                                                                                              \
        name, (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS, text          \
    }

static PyMethodDef functions[] = {
    FUNCTION("keys", binding_keys, "An iterator of the keys of a snapshot."),
    FUNCTION("log_file", binding_log, "An iterator of the commands of a file or a manifest."),
    FUNCTION("check", binding_check, "Verifies a snapshot."),
    FUNCTION("salvage", binding_salvage_file, "Saves what can be saved of a damaged snapshot."),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "redoubt._redoubt",
    .m_doc = "Reads the files of Redis and Valkey.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__redoubt(void);

PyMODINIT_FUNC PyInit__redoubt(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    error_type = PyErr_NewExceptionWithDoc(
        "redoubt.Error", "A file that cannot be read, with code, reason, offset and context.",
        PyExc_Exception, NULL);
    if (error_type != NULL && PyModule_AddObjectRef(module, "Error", error_type) == 0 &&
        PyModule_AddStringConstant(module, "library_version", REDOUBT_VERSION_STRING) == 0 &&
        add_types(module) && binding_add_keys(module) && binding_add_log(module))
        return module;
    Py_DECREF(module);
    return NULL;
}
