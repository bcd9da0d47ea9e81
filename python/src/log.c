/* The iterator of the commands of a log: one file, or those that a manifest lists. */
#include "binding.h"

#include <aof/reader.h>

struct log {
    PyObject_HEAD struct rd_src *src;
    struct aof_reader *reader;
    struct aof_manifest manifest;
    PyObject *path; /* of the file, or of the manifest */
    PyObject *name; /* of the file that is being read */
    bool busy;
};

static void close_log(struct log *log)
{
    aof_reader_free(log->reader);
    rd_src_close(log->src);
    aof_manifest_done(&log->manifest);
    log->reader = NULL;
    log->src = NULL;
}

static void log_dealloc(PyObject *self)
{
    close_log((struct log *)self);
    Py_CLEAR(((struct log *)self)->path);
    Py_CLEAR(((struct log *)self)->name);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *arguments(const struct resp_command *command)
{
    PyObject *args = PyTuple_New((Py_ssize_t)command->argc);
    for (size_t i = 0; args != NULL && i < command->argc; i++) {
        PyObject *arg = binding_bytes(command->argv[i]);
        if (arg == NULL)
            Py_CLEAR(args);
        else
            PyTuple_SET_ITEM(args, (Py_ssize_t)i, arg);
    }
    return args;
}

static PyObject *make_command(const struct log *log, const struct aof_event *ev)
{
    PyObject *const items[] = {arguments(&ev->entry.command),
                               PyLong_FromUnsignedLongLong(ev->db),
                               ev->time_s == AOF_NO_TIME ? Py_NewRef(Py_None)
                                                         : PyLong_FromLongLong(ev->time_s),
                               Py_NewRef(log->name),
                               PyLong_FromUnsignedLongLong(ev->offset),
                               PyLong_FromUnsignedLongLong(ev->number),
                               PyBool_FromLong(ev->in_multi)};
    return binding_tuple(binding_command, items, 7);
}

static PyObject *next_command(struct log *log)
{
    struct aof_event ev;
    enum aof_status status;
    if (log->reader == NULL)
        return NULL;
    while ((status = aof_reader_next(log->reader, &ev)) == AOF_EVENT) {
        if (ev.kind == AOF_COMMAND)
            return make_command(log, &ev);
        if (ev.kind == AOF_FILE_BEGIN && log->manifest.state != NULL) {
            Py_XSETREF(log->name, binding_text(ev.name));
            if (log->name == NULL)
                return NULL;
        }
    }
    if (status == AOF_FAIL)
        binding_raise(aof_reader_err(log->reader));
    return NULL;
}

static PyObject *log_next(PyObject *self)
{
    struct log *log = (struct log *)self;
    if (log->busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread uses this iterator");
        return NULL;
    }
    log->busy = true;
    PyObject *command = next_command(log);
    log->busy = false;
    if (command == NULL)
        close_log(log);
    return command;
}

static PyTypeObject log_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "redoubt._redoubt.Log",
    .tp_basicsize = sizeof(struct log),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = log_dealloc,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = log_next,
};

bool binding_add_log(PyObject *module)
{
    return PyType_Ready(&log_type) == 0 &&
           PyModule_AddObjectRef(module, "Log", (PyObject *)&log_type) == 0;
}

/* A file of the folder of the manifest. */
static bool open_part(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    const char *manifest = PyBytes_AS_STRING(((const struct log *)ctx)->path);
    const char *slash = strrchr(manifest, '/');
    struct rd_buf path = {0};
    bool ok = (slash == NULL || rd_buf_add(&path, manifest, (size_t)(slash + 1 - manifest))) &&
              rd_buf_add(&path, file->name, strlen(file->name) + 1);
    ok = ok ? binding_open_file((const char *)path.ptr, ret, err) : rd_err_nomem(err, path.len);
    rd_buf_done(&path);
    return ok;
}

static bool begin(struct log *log, bool is_manifest, struct rd_err *err)
{
    const struct aof_log_opts whole = AOF_LOG_OPTS(.whole = true);
    const struct aof_reader_opts opts =
        AOF_READER_OPTS(.log = &whole, .open = open_part, .ctx = log);
    if (!binding_open_file(PyBytes_AS_STRING(log->path), &log->src, err))
        return false;
    if (!is_manifest)
        return aof_reader_new_file(&log->reader, log->src, &opts, err);
    return aof_manifest_read(&log->manifest, log->src, NULL, NULL, err) &&
           aof_reader_new(&log->reader, &log->manifest, &opts, err);
}

PyObject *binding_log(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"path", "name", "manifest", NULL};
    PyObject *path, *name;
    int is_manifest = 0;
    struct rd_err err = {0};
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&U|$p", KEYWORDS(names), PyUnicode_FSConverter,
                                     &path, &name, &is_manifest))
        return NULL;
    struct log *log = (struct log *)log_type.tp_alloc(&log_type, 0);
    if (log == NULL) {
        Py_DECREF(path);
        return NULL;
    }
    log->path = path;
    log->name = Py_NewRef(name);
    aof_manifest_init(&log->manifest);
    if (begin(log, is_manifest != 0, &err))
        return (PyObject *)log;
    binding_raise(&err);
    Py_DECREF(log);
    return NULL;
}
