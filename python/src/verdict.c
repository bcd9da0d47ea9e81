/* Check and salvage. They work without the global lock; what they report is collected in C. */
#include "binding.h"

#include <rdb/check.h>
#include <rdb/salvage.h>
#include <sys/random.h>

/* What was found, with its texts copied. */
struct note {
    const char *word;
    const char *severity;
    uint64_t from, to;
    uint64_t db;
    bool has_key;
    char *key;
    size_t key_len;
    char text[RD_ERR_TEXT_MAX];
};

struct notes {
    struct note *items;
    size_t n, cap, most;
    bool nomem;
};

static struct note *add_note(struct notes *notes)
{
    if (notes->n == notes->most || notes->nomem)
        return NULL;
    if (notes->n == notes->cap) {
        size_t cap = notes->cap == 0 ? 16 : notes->cap * 2;
        struct note *items = PyMem_RawRealloc(notes->items, cap * sizeof *items);
        notes->nomem = items == NULL;
        if (items == NULL)
            return NULL;
        notes->items = items;
        notes->cap = cap;
    }
    struct note *note = &notes->items[notes->n++];
    *note = (struct note){.word = ""};
    return note;
}

static void copy_key(struct notes *notes, struct note *note, bool has_key, struct rd_slice key)
{
    if (!has_key)
        return;
    note->key = PyMem_RawMalloc(key.len + 1);
    notes->nomem |= note->key == NULL;
    note->has_key = note->key != NULL;
    if (note->key == NULL || key.len == 0)
        return;
    memcpy(note->key, key.ptr, key.len);
    note->key_len = key.len;
}

static void free_notes(struct notes *notes)
{
    for (size_t i = 0; i < notes->n; i++)
        PyMem_RawFree(notes->items[i].key);
    PyMem_RawFree(notes->items);
}

static PyObject *key_of(const struct note *note)
{
    return note->has_key ? PyBytes_FromStringAndSize(note->key, (Py_ssize_t)note->key_len)
                         : Py_NewRef(Py_None);
}

static PyObject *make_finding(const struct note *note)
{
    PyObject *const items[] = {PyUnicode_FromString(note->word),
                               PyUnicode_FromString(note->severity),
                               binding_count(note->from),
                               PyLong_FromUnsignedLongLong(note->db),
                               key_of(note),
                               binding_text(note->text)};
    return binding_tuple(binding_finding, items, 6);
}

static PyObject *make_loss(const struct note *note)
{
    PyObject *const items[] = {PyUnicode_FromString(note->word), binding_count(note->from),
                               binding_count(note->to), binding_text(note->text), key_of(note)};
    return binding_tuple(binding_loss, items, 5);
}

static PyObject *list_of(const struct notes *notes, PyObject *(*make)(const struct note *note))
{
    PyObject *list = notes->nomem ? PyErr_NoMemory() : PyList_New((Py_ssize_t)notes->n);
    for (size_t i = 0; list != NULL && i < notes->n; i++) {
        PyObject *item = make(&notes->items[i]);
        if (item == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static void make_seed(uint64_t seed[2])
{
    if (getrandom(seed, 2 * sizeof seed[0], 0) < 0)
        seed[0] = seed[1] = (uint64_t)(uintptr_t)seed;
}

/* ---- check ---- */

static void on_finding(void *ctx, const struct rdb_finding *finding)
{
    struct note *note = add_note(ctx);
    if (note == NULL)
        return;
    note->word = finding->word;
    note->severity = rdb_severity_name(finding->severity);
    note->from = finding->offset;
    note->db = finding->db;
    copy_key(ctx, note, finding->has_key, finding->key);
    rd_err_printable(note->text, sizeof note->text, rd_slice_str(finding->text));
}

static PyObject *make_verdict(const struct rdb_check_result *res, const struct notes *notes)
{
    static const char *const sums[] = {"unknown", "none", "off", "ok", "bad"};
    bool sound = !res->damaged && res->errors == 0 && res->sum != RDB_SUM_BAD;
    PyObject *const items[] = {
        PyBool_FromLong(sound),
        binding_error(&res->err),
        res->has_header ? PyUnicode_FromString(rdb_dialect_name(res->dialect)) : Py_NewRef(Py_None),
        res->has_header ? PyLong_FromLong(res->version) : Py_NewRef(Py_None),
        PyUnicode_FromString(sums[res->sum]),
        PyLong_FromUnsignedLongLong(res->keys),
        PyLong_FromUnsignedLongLong(res->expires),
        PyLong_FromUnsignedLongLong(res->errors),
        PyLong_FromUnsignedLongLong(res->warnings),
        list_of(notes, make_finding),
        binding_count(res->end),
    };
    return binding_tuple(binding_verdict, items, 11);
}

static bool open_plain(const char *path, struct rd_src **ret, struct rd_err *err)
{
    if (!rd_src_open_file(ret, path, NULL, err))
        return false;
    if (rd_src_decompress(ret, err))
        return true;
    rd_src_close(*ret);
    return false;
}

PyObject *binding_check(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"path", "quick", "max_findings", NULL};
    PyObject *path;
    int quick = 0;
    Py_ssize_t most = 1000;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$pn", KEYWORDS(names), PyUnicode_FSConverter,
                                     &path, &quick, &most))
        return NULL;
    struct notes notes = {.most = most > 0 ? (size_t)most : 0};
    struct rdb_check_opts opts =
        RDB_CHECK_OPTS(.quick = quick != 0, .finding = on_finding, .ctx = &notes);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_err err = {0};
    struct rd_src *src = NULL;
    bool ok;
    make_seed(opts.seed);
    Py_BEGIN_ALLOW_THREADS;
    ok = open_plain(PyBytes_AS_STRING(path), &src, &err) && rdb_check(src, &opts, &res, &err);
    rd_src_close(src);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    PyObject *verdict = ok ? make_verdict(&res, &notes) : binding_raise(&err);
    free_notes(&notes);
    return verdict;
}

/* ---- salvage ---- */

static void on_loss(void *ctx, const struct rdb_loss *loss)
{
    static const char *const words[] = {"range", "key", "partial"};
    struct note *note = add_note(ctx);
    if (note == NULL)
        return;
    note->word = words[loss->kind];
    note->from = loss->from;
    note->to = loss->to;
    copy_key(ctx, note, loss->has_key, loss->key);
    rd_err_printable(note->text, sizeof note->text, rd_slice_str(loss->why));
}

static PyObject *make_salvage(const struct rdb_salvage_result *res, const struct notes *notes)
{
    PyObject *const items[] = {
        PyLong_FromUnsignedLongLong(res->keys),
        PyLong_FromUnsignedLongLong(res->keys_partial),
        PyLong_FromUnsignedLongLong(res->keys_dropped),
        PyLong_FromUnsignedLongLong(res->keys_doubted),
        PyLong_FromUnsignedLongLong(res->keys_left_out),
        PyLong_FromUnsignedLongLong(res->ranges),
        PyLong_FromUnsignedLongLong(res->bytes_lost),
        binding_count(res->first_loss),
        PyBool_FromLong(res->proved),
        PyBool_FromLong(res->corrected),
        list_of(notes, make_loss),
    };
    return binding_tuple(binding_salvage, items, 11);
}

struct paths {
    const char *in;
    const char *out; /* NULL: none */
    bool replace;
};

/* Salvage reads the input twice. */
static bool refuse_packed(struct rd_src *src, struct rd_err *err)
{
    struct rd_slice head;
    if (rd_src_need(src, 4, &head) != RD_SRC_OK || !rd_src_is_packed(head))
        return true;
    return rd_err_set(err, RD_ERR_UNSUPPORTED, 0, "it is compressed: decompress it first");
}

static bool salvage(const struct paths *paths, const struct rdb_salvage_opts *opts,
                    struct rdb_salvage_result *res, struct rd_err *err)
{
    const struct rd_sink_opts sink_opts = RD_SINK_OPTS(.replace = paths->replace);
    struct rd_src *src = NULL, *copy = NULL;
    struct rd_sink *out = NULL;
    bool ok = rd_src_open_file(&src, paths->in, NULL, err) && refuse_packed(src, err) &&
              (paths->out == NULL || (rd_src_open_again(&copy, src, err) &&
                                      rd_sink_open_file(&out, paths->out, &sink_opts, err))) &&
              rdb_salvage(src, copy, out, opts, res, err);
    if (!ok)
        rd_sink_abort(out);
    else if (out != NULL)
        ok = rd_sink_close(out, err);
    rd_src_close(copy);
    rd_src_close(src);
    return ok;
}

PyObject *binding_salvage_file(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"path", "out", "partial", "strict", "replace", NULL};
    PyObject *path, *out_object = Py_None, *out = NULL;
    int partial = 0, strict = 0, replace = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O$ppp", KEYWORDS(names),
                                     PyUnicode_FSConverter, &path, &out_object, &partial, &strict,
                                     &replace))
        return NULL;
    if (out_object != Py_None && !PyUnicode_FSConverter(out_object, &out)) {
        Py_DECREF(path);
        return NULL;
    }
    struct notes notes = {.most = 100000};
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.partial = partial != 0, .strict = strict != 0,
                                                    .loss = on_loss, .ctx = &notes);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_err err = {0};
    const struct paths paths = {.in = PyBytes_AS_STRING(path),
                                .out = out != NULL ? PyBytes_AS_STRING(out) : NULL,
                                .replace = replace != 0};
    bool ok;
    make_seed(opts.seed);
    Py_BEGIN_ALLOW_THREADS;
    ok = salvage(&paths, &opts, &res, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    Py_XDECREF(out);
    PyObject *result = ok ? make_salvage(&res, &notes) : binding_raise(&err);
    free_notes(&notes);
    return result;
}
