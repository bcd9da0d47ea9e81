/* The iterator of the keys of a snapshot. */
#include "binding.h"

struct keys {
    PyObject_HEAD struct rd_src *src;
    struct rdb_reader *reader;
    PyObject *held; /* bytes that the source reads */
    bool values;
    bool busy; /* another thread is in it: reading a file releases the lock */
};

static void close_keys(struct keys *keys)
{
    rdb_reader_free(keys->reader);
    rd_src_close(keys->src);
    keys->reader = NULL;
    keys->src = NULL;
    Py_CLEAR(keys->held);
}

static void keys_dealloc(PyObject *self)
{
    close_keys((struct keys *)self);
    Py_TYPE(self)->tp_free(self);
}

/* The words of a type, made once. */
struct words {
    PyObject *kind, *encoding;
};

static const struct words *words_of(const struct rdb_type *type)
{
    static struct words words[RDB_TYPE_COUNT];
    struct words *of = &words[type->id];
    if (of->kind == NULL)
        of->kind = PyUnicode_InternFromString(rdb_kind_name(type->kind));
    if (of->encoding == NULL)
        of->encoding = PyUnicode_InternFromString(type->encoding);
    return of;
}

static PyObject *make_key(struct keys *keys, const struct rdb_event *ev)
{
    uint64_t size = RD_NO_OFFSET;
    PyObject *expiries = NULL;
    const struct words *words = words_of(ev->key.type);
    /* The name is borrowed until the value is read. */
    PyObject *items[] = {PyLong_FromUnsignedLongLong(ev->key.db),
                         binding_bytes(ev->key.name),
                         Py_XNewRef(words->kind),
                         Py_XNewRef(words->encoding),
                         binding_time(ev->key.expire_ms),
                         binding_count(ev->key.idle_s),
                         binding_count(ev->key.freq),
                         NULL,
                         NULL,
                         NULL,
                         PyLong_FromUnsignedLongLong(ev->key.record)};
    if (keys->values) {
        items[8] = binding_value(keys->reader, ev->key.type, &size, &expiries);
    } else if (rdb_reader_skip_value(keys->reader) == RDB_EVENT) {
        items[8] = Py_NewRef(Py_None);
    } else {
        binding_raise(rdb_reader_err(keys->reader));
    }
    items[9] = expiries != NULL ? expiries : Py_NewRef(Py_None);
    if (items[8] != NULL)
        items[7] = binding_count(size);
    return binding_tuple(binding_key, items, 11);
}

static bool check_sum(const struct rdb_event *ev)
{
    struct rd_err err = {0};
    if (!ev->trailer.summed || ev->trailer.stored == 0 ||
        ev->trailer.stored == ev->trailer.computed)
        return true;
    rd_err_set(&err, RD_ERR_CHECKSUM, ev->offset, "stored %016llx, computed %016llx",
               (unsigned long long)ev->trailer.stored, (unsigned long long)ev->trailer.computed);
    binding_raise(&err);
    return false;
}

static PyObject *next_key(struct keys *keys)
{
    struct rdb_event ev;
    enum rdb_status status;
    if (keys->reader == NULL)
        return NULL;
    while ((status = rdb_reader_next(keys->reader, &ev)) == RDB_EVENT)
        if (ev.kind == RDB_KEY)
            return make_key(keys, &ev);
        else if (ev.kind == RDB_TRAILER && !check_sum(&ev))
            return NULL;
    if (status == RDB_FAIL)
        binding_raise(rdb_reader_err(keys->reader));
    return NULL;
}

/* After an error there is nothing more. */
static PyObject *keys_next(PyObject *self)
{
    struct keys *keys = (struct keys *)self;
    if (keys->busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread uses this iterator");
        return NULL;
    }
    keys->busy = true;
    PyObject *key = next_key(keys);
    keys->busy = false;
    if (key == NULL)
        close_keys(keys);
    return key;
}

static PyTypeObject keys_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "redoubt._redoubt.Keys",
    .tp_basicsize = sizeof(struct keys),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = keys_dealloc,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = keys_next,
};

bool binding_add_keys(PyObject *module)
{
    return PyType_Ready(&keys_type) == 0 &&
           PyModule_AddObjectRef(module, "Keys", (PyObject *)&keys_type) == 0;
}

PyObject *binding_keys(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"source", "data", "values", NULL};
    PyObject *from;
    int is_data = 0, values = 1;
    struct rd_err err = {0};
    struct rdb_reader_opts opts = RDB_READER_OPTS(.attach_meta = true);
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$pp", KEYWORDS(names), &from, &is_data,
                                     &values))
        return NULL;
    opts.detail = values ? RDB_DETAIL_ELEMENTS : RDB_DETAIL_FRAMES;
    struct keys *keys = (struct keys *)keys_type.tp_alloc(&keys_type, 0);
    if (keys == NULL)
        return NULL;
    keys->values = values != 0;
    if (binding_open(from, is_data != 0, &keys->src, &keys->held)) {
        if (rdb_reader_new(&keys->reader, keys->src, &opts, &err))
            return (PyObject *)keys;
        binding_raise(&err);
    }
    Py_DECREF(keys);
    return NULL;
}
