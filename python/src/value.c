/* Values: bytes, list, set, a list of (member, score), dict; of a stream a dict of its parts. */
#include "binding.h"

struct walk {
    struct rdb_reader *reader;
    struct rdb_event ev;
    struct rd_buf pieces; /* of a long string */
    PyObject *field;      /* whose value follows */
    PyObject *path;       /* the dict of a path */
    PyObject *expiries;
    uint64_t size;
};

/* The next event of the value. False: an exception is set. */
static bool next(struct walk *walk)
{
    if (rdb_reader_next(walk->reader, &walk->ev) == RDB_EVENT)
        return true;
    binding_raise(rdb_reader_err(walk->reader));
    return false;
}

/* The string of an ELEM event, and of the events after it if it comes in pieces. */
static PyObject *string(struct walk *walk)
{
    char digits[RD_NUM_I64_MAX];
    struct rdb_string *str = &walk->ev.elem.str;
    if (!str->more)
        return binding_bytes(rdb_string_bytes(str, digits));
    rd_buf_reset(&walk->pieces);
    for (;;) {
        if (!rd_buf_add(&walk->pieces, str->ptr, str->len))
            return PyErr_NoMemory();
        if (!str->more)
            return binding_bytes(rd_buf_slice(&walk->pieces));
        if (!next(walk))
            return NULL;
    }
}

static bool append(PyObject *list, PyObject *item)
{
    bool ok = item != NULL && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return ok;
}

/* Takes over the references. */
static bool put(PyObject *dict, PyObject *key, PyObject *value)
{
    bool ok = key != NULL && value != NULL && PyDict_SetItem(dict, key, value) == 0;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return ok;
}

static bool put_word(PyObject *dict, const char *key, PyObject *value)
{
    bool ok = value != NULL && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static PyObject *stream_id(struct rdb_stream_id id)
{
    return PyUnicode_FromFormat("%llu-%llu", (unsigned long long)id.ms, (unsigned long long)id.seq);
}

/* ---- elements ---- */

static bool add_expiry(struct walk *walk, int64_t expire_ms)
{
    if (expire_ms == RDB_NO_EXPIRE)
        return true;
    if (walk->expiries == NULL && (walk->expiries = PyDict_New()) == NULL)
        return false;
    return put(walk->expiries, Py_NewRef(walk->field), PyLong_FromLongLong(expire_ms));
}

static bool add_pair(struct walk *walk, PyObject *to, PyObject *value)
{
    PyObject *dict = walk->path != NULL ? walk->path : to;
    int64_t expire_ms = walk->ev.elem.expire_ms;
    if (value == NULL || walk->field == NULL || !add_expiry(walk, expire_ms)) {
        Py_XDECREF(value);
        return false;
    }
    bool ok = put(dict, walk->field, value);
    walk->field = NULL;
    return ok;
}

static bool begin_path(struct walk *walk, PyObject *to, PyObject *name)
{
    Py_XSETREF(walk->path, PyDict_New());
    if (walk->path != NULL)
        return put(to, name, Py_NewRef(walk->path));
    Py_XDECREF(name);
    return false;
}

static bool add_item(struct walk *walk, PyObject *to, PyObject *value)
{
    return put(to, PyLong_FromUnsignedLongLong(walk->ev.elem.index), value);
}

static bool add_member(struct walk *walk, const struct rdb_type *type, PyObject *to,
                       PyObject *member)
{
    if (type->kind == RDB_KIND_ZSET)
        return append(to,
                      member != NULL ? Py_BuildValue("(Nd)", member, walk->ev.elem.score) : NULL);
    bool ok = member != NULL && PySet_Add(to, member) == 0;
    Py_XDECREF(member);
    return ok;
}

static bool add_elem(struct walk *walk, const struct rdb_type *type, PyObject **to)
{
    PyObject *value = string(walk); /* walk->ev is then the event of the last piece */
    switch (walk->ev.elem.role) {
    case RDB_ROLE_STRING:
        Py_XSETREF(*to, value);
        return value != NULL;
    case RDB_ROLE_ELEMENT:
        return append(*to, value);
    case RDB_ROLE_MEMBER:
        return add_member(walk, type, *to, value);
    case RDB_ROLE_FIELD:
        Py_XSETREF(walk->field, value);
        return value != NULL;
    case RDB_ROLE_VALUE:
        return add_pair(walk, *to, value);
    case RDB_ROLE_ITEM:
        return add_item(walk, *to, value);
    case RDB_ROLE_PATH:
        return begin_path(walk, *to, value);
    }
    Py_XDECREF(value);
    return true;
}

/* ---- streams ---- */

struct stream {
    PyObject *dict;
    PyObject *entries, *fields; /* fields: of the last entry */
    PyObject *groups, *group, *pending, *consumers;
    PyObject *owner; /* dict of the pending entries of the group, by id */
    PyObject *consumer;
};

/* A new list in a dict; borrowed. */
static PyObject *new_list(PyObject *dict, const char *key)
{
    PyObject *list = PyList_New(0);
    return put_word(dict, key, list) ? PyDict_GetItemString(dict, key) : NULL;
}

static bool begin_entry(struct stream *st, const struct rdb_event *ev)
{
    PyObject *fields = PyList_New(0);
    PyObject *entry =
        fields != NULL ? Py_BuildValue("(NN)", stream_id(ev->entry.id), fields) : NULL;
    st->fields = fields; /* the entry has the reference */
    return append(st->entries, entry);
}

static bool add_field(struct walk *walk, struct stream *st)
{
    bool field = walk->ev.elem.role == RDB_ROLE_FIELD;
    PyObject *text = string(walk);
    if (field) {
        Py_XSETREF(walk->field, text);
        return text != NULL;
    }
    if (text == NULL || walk->field == NULL || st->fields == NULL) {
        Py_XDECREF(text);
        return false;
    }
    PyObject *pair = Py_BuildValue("(NN)", walk->field, text);
    walk->field = NULL;
    return append(st->fields, pair);
}

static bool about(struct stream *st, const struct rdb_event *ev)
{
    return put_word(st->dict, "length", PyLong_FromUnsignedLongLong(ev->stream.length)) &&
           put_word(st->dict, "last_id", stream_id(ev->stream.last_id)) &&
           (!ev->stream.has_offsets ||
            (put_word(st->dict, "first_id", stream_id(ev->stream.first_id)) &&
             put_word(st->dict, "max_deleted_id", stream_id(ev->stream.max_deleted_id)) &&
             put_word(st->dict, "entries_added",
                      PyLong_FromUnsignedLongLong(ev->stream.entries_added))));
}

static bool begin_group(struct stream *st, const struct rdb_event *ev)
{
    PyObject *group = PyDict_New();
    if (!append(st->groups, group))
        return false;
    st->group = group; /* borrowed */
    st->pending = st->consumers = NULL;
    PyDict_Clear(st->owner);
    return put_word(group, "name", binding_bytes(ev->group.name)) &&
           put_word(group, "last_id", stream_id(ev->group.last_id)) &&
           put_word(group, "entries_read", binding_count(ev->group.entries_read)) &&
           (st->pending = new_list(group, "pending")) != NULL &&
           (st->consumers = new_list(group, "consumers")) != NULL;
}

static bool add_pending(struct stream *st, const struct rdb_event *ev)
{
    PyObject *id = stream_id(ev->pending.id);
    PyObject *entry = PyDict_New();
    bool ok = id != NULL && entry != NULL && put_word(entry, "id", Py_NewRef(id)) &&
              put_word(entry, "consumer", Py_NewRef(Py_None)) &&
              put_word(entry, "delivery_ms", PyLong_FromLongLong(ev->pending.delivery_ms)) &&
              put_word(entry, "delivery_count",
                       PyLong_FromUnsignedLongLong(ev->pending.delivery_count)) &&
              PyDict_SetItem(st->owner, id, entry) == 0 && PyList_Append(st->pending, entry) == 0;
    Py_XDECREF(id);
    Py_XDECREF(entry);
    return ok;
}

static bool add_consumer(struct stream *st, const struct rdb_event *ev)
{
    PyObject *consumer = PyDict_New();
    Py_XSETREF(st->consumer, binding_bytes(ev->consumer.name));
    if (!append(st->consumers, consumer) || st->consumer == NULL)
        return false;
    return put_word(consumer, "name", Py_NewRef(st->consumer)) &&
           put_word(consumer, "seen_ms", PyLong_FromLongLong(ev->consumer.seen_ms)) &&
           (ev->consumer.active_ms == RDB_NO_EXPIRE ||
            put_word(consumer, "active_ms", PyLong_FromLongLong(ev->consumer.active_ms)));
}

/* The consumer owns the pending entry, or nobody does any more. */
static bool own(struct stream *st, const struct rdb_event *ev)
{
    PyObject *id = stream_id(ev->id);
    PyObject *entry = id != NULL ? PyDict_GetItemWithError(st->owner, id) : NULL;
    bool ok = id != NULL && !PyErr_Occurred();
    Py_XDECREF(id);
    if (!ok || entry == NULL)
        return ok;
    if (ev->kind == RDB_NACKED)
        return put_word(entry, "nacked", Py_NewRef(Py_True));
    return st->consumer == NULL || put_word(entry, "consumer", Py_NewRef(st->consumer));
}

static bool stream_event(struct walk *walk, struct stream *st)
{
    const struct rdb_event *ev = &walk->ev;
    switch (ev->kind) {
    case RDB_ENTRY:
        return begin_entry(st, ev);
    case RDB_ELEM:
        return add_field(walk, st);
    case RDB_STREAM:
        return about(st, ev);
    case RDB_GROUP:
        return begin_group(st, ev);
    case RDB_PENDING:
        return st->pending == NULL || add_pending(st, ev);
    case RDB_CONSUMER:
        return st->consumers == NULL || add_consumer(st, ev);
    case RDB_OWNED:
    case RDB_NACKED:
        return own(st, ev);
    default:
        return true;
    }
}

static PyObject *stream(struct walk *walk)
{
    struct stream st = {.dict = PyDict_New(), .owner = PyDict_New()};
    bool ok = st.dict != NULL && st.owner != NULL &&
              (st.entries = new_list(st.dict, "entries")) != NULL &&
              (st.groups = new_list(st.dict, "groups")) != NULL;
    while (ok && (ok = next(walk)) && walk->ev.kind != RDB_VALUE_END)
        ok = stream_event(walk, &st);
    Py_XDECREF(st.owner);
    Py_XDECREF(st.consumer);
    if (ok)
        return st.dict;
    Py_XDECREF(st.dict);
    return NULL;
}

/* ---- all types ---- */

static PyObject *new_value(const struct rdb_type *type)
{
    switch (type->kind) {
    case RDB_KIND_LIST:
    case RDB_KIND_ZSET:
        return PyList_New(0);
    case RDB_KIND_SET:
        return PySet_New(NULL);
    case RDB_KIND_HASH:
    case RDB_KIND_ARRAY:
        return PyDict_New();
    default:
        return Py_NewRef(Py_None);
    }
}

static PyObject *elements(struct walk *walk, const struct rdb_type *type)
{
    PyObject *value = new_value(type);
    bool ok = value != NULL;
    while (ok && (ok = next(walk)) && walk->ev.kind != RDB_VALUE_END)
        if (walk->ev.kind == RDB_ELEM)
            ok = add_elem(walk, type, &value);
    if (ok)
        return value;
    Py_XDECREF(value);
    return NULL;
}

static PyObject *module(struct walk *walk)
{
    char name[RDB_MODULE_NAME_LEN + 1] = "";
    unsigned version = 0;
    do {
        if (!next(walk))
            return NULL;
        if (walk->ev.kind == RDB_VALUE) {
            rdb_module_name(walk->ev.value.module_id, name);
            version = rdb_module_encver(walk->ev.value.module_id);
        }
    } while (walk->ev.kind != RDB_VALUE_END);
    PyObject *const items[] = {PyUnicode_FromString(name), PyLong_FromUnsignedLong(version)};
    return binding_tuple(binding_module, items, 2);
}

PyObject *binding_value(struct rdb_reader *reader, const struct rdb_type *type, uint64_t *ret_size,
                        PyObject **ret_expiries)
{
    struct walk walk = {.reader = reader};
    PyObject *value = type->kind == RDB_KIND_STREAM   ? stream(&walk)
                      : type->kind == RDB_KIND_MODULE ? module(&walk)
                                                      : elements(&walk, type);
    rd_buf_done(&walk.pieces);
    Py_XDECREF(walk.field);
    Py_XDECREF(walk.path);
    if (value == NULL) {
        Py_XDECREF(walk.expiries);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "a value without its parts");
        return NULL;
    }
    *ret_size = walk.ev.value_end.bytes;
    *ret_expiries = walk.expiries;
    return value;
}
