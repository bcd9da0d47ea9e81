/* binding.h - private to python/src: the module redoubt._redoubt.
 *
 *     src/module.c    the module, its types and errors
 *     src/input.c     sources that read without the global lock
 *     src/snapshot.c  the iterator of keys
 *     src/value.c     values of keys
 *     src/log.c       the iterator of the commands of a log
 *     src/verdict.c   check and salvage
 *
 * It uses the installed headers of libredoubt only.
 */
#ifndef PYTHON_BINDING_H
#define PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <base/buf.h>
#include <base/err.h>
#include <base/src.h>
#include <rdb/reader.h>

/* Python takes the names of arguments as if it would change them. */
#define KEYWORDS(names) ((char **)(uintptr_t)(names))

/* Named tuples with these fields, made once; see module.c. */
extern PyTypeObject *binding_key, *binding_module, *binding_command, *binding_verdict,
    *binding_finding, *binding_salvage, *binding_loss;

/* Raises redoubt.Error; always returns NULL. */
PyObject *binding_raise(const struct rd_err *err);

/* A new redoubt.Error, not raised, or None if nothing happened. */
PyObject *binding_error(const struct rd_err *err);

/* A str; bytes that are not UTF-8 become lone surrogates. */
PyObject *binding_text(const char *text);
PyObject *binding_bytes(struct rd_slice bytes);
/* None for RD_NO_OFFSET and RDB_UNKNOWN. */
PyObject *binding_count(uint64_t count);
/* None for RDB_NO_EXPIRE. */
PyObject *binding_time(int64_t ms);

/* Fills a named tuple with new references. If one of them is NULL, an exception is set: the others
 * are released, and the result is NULL. */
PyObject *binding_tuple(PyTypeObject *type, PyObject *const *items, Py_ssize_t n);

/* input.c: opens a path (str, bytes, os.PathLike), or an object with the buffer protocol.
 * Compressed input is decompressed. *ret_held keeps the object alive while the source is used. */
bool binding_open(PyObject *from, bool is_data, struct rd_src **ret, PyObject **ret_held);
/* The same for a path in C. No exception is set. */
bool binding_open_file(const char *path, struct rd_src **ret, struct rd_err *err);

/* value.c: reads the value that follows a KEY. NULL: an exception is set. *ret_expiries: a dict, or
 * NULL if no field expires. */
PyObject *binding_value(struct rdb_reader *reader, const struct rdb_type *type, uint64_t *ret_size,
                        PyObject **ret_expiries);

/* The functions of the module. */
PyObject *binding_keys(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *binding_log(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *binding_check(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *binding_salvage_file(PyObject *module, PyObject *args, PyObject *kwargs);
bool binding_add_keys(PyObject *module);
bool binding_add_log(PyObject *module);

#endif
