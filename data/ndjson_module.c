/* ndjson_module.c - the values of modules, by the tables of data/module_types.h.
 *
 * A value that does not have the form of its table is closed where it differs and marked opaque:
 * the file is read to its end in any case.
 */
#include "json/document.h"
#include "data/ndjson_impl.h"

static void put_label(struct ndjson *lines, const char *label)
{
    rd_sink_write(lines->sink, label, strlen(label));
}

static void put_comma(struct ndjson *lines)
{
    if (lines->module.comma)
        rd_sink_byte(lines->sink, ',');
    lines->module.comma = true;
}

static void put_name(struct ndjson *lines, const char *name)
{
    put_comma(lines);
    rd_sink_byte(lines->sink, '"');
    put_label(lines, name);
    put_label(lines, "\":");
}

/* The text of JSON is always UTF-8, whatever form is chosen for other strings. */
static void put_string(struct ndjson *lines, const struct rdb_string *str, bool utf8)
{
    char tmp[RD_NUM_I64_MAX];
    enum json_form form = lines->text.form;
    if (utf8)
        lines->text.form = JSON_UTF8;
    if (str->first)
        rd_sink_byte(lines->sink, '"');
    ndjson_piece(lines, rdb_string_bytes(str, tmp), str->more);
    if (!str->more)
        rd_sink_byte(lines->sink, '"');
    lines->text.form = form;
}

/* ---- fields ---- */

/* The innermost list; the value is in one. */
static struct ndjson_loop *loop_of(struct ndjson_module *m)
{
    return &m->loops[m->depth - 1];
}

/* The step after the END or FI that belongs to a LIST or IF. */
static const struct module_field *after_block(const struct module_field *f)
{
    enum module_step opens = f->step, closes = opens == MODULE_LIST ? MODULE_END : MODULE_FI;
    unsigned depth = 0;
    do {
        depth += f->step == opens;
        depth -= f->step == closes;
        f++;
    } while (depth > 0);
    return f;
}

static void begin_element(struct ndjson *lines)
{
    struct ndjson_loop *loop = loop_of(&lines->module);
    if (loop->silent || loop->body->name == NULL)
        return;
    put_comma(lines);
    rd_sink_byte(lines->sink, '{');
    lines->module.comma = false;
}

static void end_element(struct ndjson *lines)
{
    struct ndjson_loop *loop = loop_of(&lines->module);
    if (loop->silent || loop->body->name == NULL)
        return;
    rd_sink_byte(lines->sink, '}');
    lines->module.comma = true;
}

static void end_list(struct ndjson *lines)
{
    struct ndjson_module *m = &lines->module;
    if (!loop_of(m)->silent)
        rd_sink_byte(lines->sink, ']');
    m->comma |= !loop_of(m)->silent;
    m->depth--;
}

static void begin_list(struct ndjson *lines)
{
    struct ndjson_module *m = &lines->module;
    const struct module_field *f = m->at;
    struct ndjson_loop loop = {.body = f + 1, .left = m->regs[f->reg]};
    loop.silent = f->name == NULL || (m->depth > 0 && loop_of(m)->silent);
    if (!loop.silent) {
        put_name(lines, f->name);
        rd_sink_byte(lines->sink, '[');
        m->comma = false;
    }
    m->loops[m->depth++] = loop;
    if (loop.left == 0) {
        end_list(lines);
        m->at = after_block(f);
        return;
    }
    m->at = loop.body;
    begin_element(lines);
}

static void end_round(struct ndjson *lines)
{
    struct ndjson_module *m = &lines->module;
    struct ndjson_loop *loop = loop_of(m);
    end_element(lines);
    if (--loop->left > 0) {
        m->at = loop->body;
        begin_element(lines);
        return;
    }
    m->at++;
    end_list(lines);
}

/* Goes on to the next step that takes an item. */
static void settle(struct ndjson *lines)
{
    struct ndjson_module *m = &lines->module;
    for (;;) {
        const struct module_field *f = m->at;
        bool block = f->step == MODULE_LIST || f->step == MODULE_IF;
        if (m->version < f->since)
            m->at = block ? after_block(f) : f + 1;
        else if (f->step == MODULE_LIST)
            begin_list(lines);
        else if (f->step == MODULE_END)
            end_round(lines);
        else if (f->step == MODULE_IF)
            m->at = (m->regs[f->reg] & f->mask) != 0 ? f + 1 : after_block(f);
        else if (f->step == MODULE_FI)
            m->at++;
        else
            return;
    }
}

/* Whether a step is shown; if so, begins the member or element. */
static bool begin_field(struct ndjson *lines, const struct module_field *f)
{
    struct ndjson_module *m = &lines->module;
    const struct ndjson_loop *loop = m->depth > 0 ? loop_of(m) : NULL;
    bool element = loop != NULL && loop->body->name == NULL;
    if ((loop != NULL && loop->silent) || (f->name == NULL && !element))
        return false;
    if (f->name != NULL)
        put_name(lines, f->name);
    else
        put_comma(lines);
    return true;
}

static void put_text(struct ndjson *lines, const struct module_field *f, struct rdb_string str)
{
    struct ndjson_module *m = &lines->module;
    if (str.first)
        m->shown = begin_field(lines, f);
    if (f->step == MODULE_TEXT_Z && !str.more && !str.is_int && str.len > 0 &&
        str.ptr[str.len - 1] == '\0')
        str.len--;
    if (m->shown && f->step != MODULE_BYTES)
        put_string(lines, &str, false);
    char tmp[RD_NUM_I64_MAX];
    if (m->shown && f->step == MODULE_BYTES && str.first)
        ndjson_u64(lines, str.is_int ? rdb_string_bytes(&str, tmp).len : str.total);
}

static bool fits(enum module_step step, uint64_t opcode)
{
    switch (step) {
    case MODULE_UINT:
        return opcode == RDB_MODULE_UINT;
    case MODULE_SINT:
        return opcode == RDB_MODULE_SINT;
    case MODULE_DOUBLE:
        return opcode == RDB_MODULE_DOUBLE;
    case MODULE_TEXT:
    case MODULE_TEXT_Z:
    case MODULE_BYTES:
        return opcode == RDB_MODULE_STRING;
    default:
        return false;
    }
}

static void put_field(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_module *m = &lines->module;
    const struct module_field *f = m->at;
    if (f->step == MODULE_REST)
        return;
    m->opaque = !fits(f->step, ev->item.opcode);
    if (m->opaque)
        return;
    if (ev->item.opcode == RDB_MODULE_STRING) {
        put_text(lines, f, ev->item.str);
        if (ev->item.str.more)
            return;
    } else if (begin_field(lines, f)) {
        if (f->step == MODULE_DOUBLE)
            ndjson_f64(lines, ev->item.f64);
        else if (f->step == MODULE_SINT)
            ndjson_i64(lines, ev->item.sint);
        else
            ndjson_u64(lines, ev->item.uint);
    }
    if (f->reg != 0)
        m->regs[f->reg] = ev->item.uint;
    m->at++;
    settle(lines);
}

static void end_fields(struct ndjson *lines)
{
    struct ndjson_module *m = &lines->module;
    m->opaque |= m->at->step != MODULE_REST && m->at->step != MODULE_END_ALL;
    while (m->depth > 0) {
        end_element(lines);
        end_list(lines);
    }
}

/* ---- JSON, value by value ---- */

enum tree_node {
    NODE_NULL = 0x01,
    NODE_STRING = 0x02,
    NODE_DOUBLE = 0x04,
    NODE_INTEGER = 0x08,
    NODE_BOOLEAN = 0x10,
    NODE_OBJECT = 0x20,
    NODE_ARRAY = 0x40,
    NODE_PAIR = 0x80,
};

/* The innermost object or array; the value is in one. */
static struct ndjson_branch *branch_of(struct ndjson_module *m)
{
    return &m->branches[m->depth - 1];
}

static void next_in_branch(struct ndjson_module *m)
{
    m->expect = branch_of(m)->object ? NDJSON_TREE_PAIR : NDJSON_TREE_VALUE;
}

/* After a value: closes the objects and arrays that it completes. */
static void end_value(struct ndjson *lines)
{
    struct ndjson_module *m = &lines->module;
    m->comma = true;
    while (m->depth > 0) {
        if (--branch_of(m)->left > 0) {
            next_in_branch(m);
            return;
        }
        rd_sink_byte(lines->sink, branch_of(m)->object ? '}' : ']');
        m->depth--;
    }
    m->expect = NDJSON_TREE_DONE;
}

static bool begin_branch(struct ndjson *lines, uint64_t n)
{
    struct ndjson_module *m = &lines->module;
    if (m->depth == NDJSON_TREE_MAX)
        return false;
    m->branches[m->depth++] = (struct ndjson_branch){n, m->node == NODE_OBJECT};
    rd_sink_byte(lines->sink, m->node == NODE_OBJECT ? '{' : '[');
    m->comma = false;
    if (n > 0) {
        next_in_branch(m);
        return true;
    }
    branch_of(m)->left = 1;
    end_value(lines);
    return true;
}

/* The code before a value. A comma is written here, because nothing may follow it. */
static bool begin_node(struct ndjson *lines, uint64_t node)
{
    struct ndjson_module *m = &lines->module;
    if (node == NODE_PAIR || node > NODE_ARRAY || (node & (node - 1)) != 0 || node == 0)
        return false;
    if (!m->named)
        put_comma(lines);
    m->named = false;
    m->node = (unsigned)node;
    m->expect = NDJSON_TREE_CONTENT;
    if (node == NODE_NULL) {
        NDJSON_LIT(lines, "null");
        end_value(lines);
    }
    return true;
}

static bool put_scalar(struct ndjson *lines, const struct rdb_event *ev)
{
    const struct rdb_string *str = &ev->item.str;
    uint64_t op = ev->item.opcode;
    switch (lines->module.node) {
    case NODE_STRING:
        if (op != RDB_MODULE_STRING)
            return false;
        put_string(lines, str, true);
        if (!str->more)
            end_value(lines);
        return true;
    case NODE_BOOLEAN:
        if (op != RDB_MODULE_STRING || str->more || !str->first)
            return false;
        if (str->is_int ? str->num == 1 : str->len > 0 && str->ptr[0] == '1')
            NDJSON_LIT(lines, "true");
        else
            NDJSON_LIT(lines, "false");
        break;
    case NODE_DOUBLE:
        if (op != RDB_MODULE_DOUBLE)
            return false;
        ndjson_f64(lines, ev->item.f64);
        break;
    case NODE_INTEGER:
        if (op != RDB_MODULE_SINT && op != RDB_MODULE_UINT)
            return false;
        ndjson_i64(lines, ev->item.sint);
        break;
    default:
        return op == RDB_MODULE_UINT && begin_branch(lines, ev->item.uint);
    }
    end_value(lines);
    return true;
}

static bool put_pair_name(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_module *m = &lines->module;
    if (ev->item.opcode != RDB_MODULE_STRING)
        return false;
    if (ev->item.str.first)
        put_comma(lines);
    put_string(lines, &ev->item.str, true);
    if (ev->item.str.more)
        return true;
    rd_sink_byte(lines->sink, ':');
    m->named = true;
    m->expect = NDJSON_TREE_VALUE;
    return true;
}

static bool put_tree_item(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_module *m = &lines->module;
    bool number = ev->item.opcode == RDB_MODULE_UINT;
    switch (m->expect) {
    case NDJSON_TREE_VALUE:
        return number && begin_node(lines, ev->item.uint);
    case NDJSON_TREE_CONTENT:
        return put_scalar(lines, ev);
    case NDJSON_TREE_PAIR:
        m->expect = NDJSON_TREE_NAME;
        return number && ev->item.uint == NODE_PAIR;
    case NDJSON_TREE_NAME:
        return put_pair_name(lines, ev);
    case NDJSON_TREE_DONE:
        break;
    }
    return false;
}

/* A value that was announced and did not come is null. */
static void end_tree(struct ndjson *lines)
{
    struct ndjson_module *m = &lines->module;
    bool due = m->named || m->expect == NDJSON_TREE_CONTENT ||
               (m->depth == 0 && m->expect == NDJSON_TREE_VALUE);
    m->opaque |= m->expect != NDJSON_TREE_DONE;
    if (due)
        NDJSON_LIT(lines, "null");
    for (; m->depth > 0; m->depth--)
        rd_sink_byte(lines->sink, branch_of(m)->object ? '}' : ']');
}

/* ---- JSON as a string ---- */

static void put_document(struct ndjson *lines)
{
    struct rd_slice text = rd_buf_slice(&lines->module.text);
    struct json_document_piece piece;
    bool in_string = false;
    put_name(lines, "json");
    while (json_document_next(&text, &in_string, &piece)) {
        enum json_form form = lines->text.form;
        lines->text.form = JSON_UTF8;
        if (piece.ascii)
            rd_sink_write(lines->sink, piece.bytes.ptr, piece.bytes.len);
        else
            ndjson_piece(lines, piece.bytes, false);
        lines->text.form = form;
    }
}

/* A document that is too long to be examined, or no JSON, is shown as a string. */
static void put_document_item(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_module *m = &lines->module;
    const struct rdb_string *str = &ev->item.str;
    char tmp[RD_NUM_I64_MAX];
    if (m->expect == NDJSON_TREE_DONE)
        return;
    m->opaque = ev->item.opcode != RDB_MODULE_STRING;
    if (m->opaque)
        return;
    if (str->first) {
        m->shown = !str->is_int && str->total > NDJSON_DOCUMENT_MAX;
        rd_buf_reset(&m->text);
        if (m->shown)
            put_name(lines, "json_text");
    }
    struct rd_slice bytes = rdb_string_bytes(str, tmp);
    if (m->shown)
        put_string(lines, str, true);
    else
        lines->nomem |= !rd_buf_add(&m->text, bytes.ptr, bytes.len);
    if (str->more)
        return;
    m->expect = NDJSON_TREE_DONE;
    if (m->shown)
        return;
    if (json_document_valid(rd_buf_slice(&m->text))) {
        put_document(lines);
        return;
    }
    const struct rdb_string whole = {
        .ptr = m->text.ptr, .len = m->text.len, .total = m->text.len, .first = true};
    put_name(lines, "json_text");
    put_string(lines, &whole, true);
}

/* ---- the value ---- */

void ndjson_module_begin(struct ndjson *lines, uint64_t id)
{
    struct ndjson_module *m = &lines->module;
    const char *words = module_type_words(id);
    m->type = module_type_of(id);
    m->version = rdb_module_encver(id);
    m->at = m->type != NULL ? m->type->fields : NULL;
    memset(m->regs, 0, sizeof m->regs);
    m->depth = 0;
    m->comma = true;
    m->opaque = m->named = false;
    m->expect = NDJSON_TREE_VALUE;
    if (words != NULL) {
        put_name(lines, "kind");
        rd_sink_byte(lines->sink, '"');
        put_label(lines, words);
        rd_sink_byte(lines->sink, '"');
    }
    if (m->type == NULL) {
        m->opaque = words != NULL;
    } else if (m->type->form == MODULE_FIELDS) {
        settle(lines);
    } else if (m->type->form == MODULE_JSON_TREE) {
        put_name(lines, "json");
        m->comma = false;
    }
}

void ndjson_module_put(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_module *m = &lines->module;
    if (m->type == NULL || m->opaque)
        return;
    if (m->type->form == MODULE_FIELDS)
        put_field(lines, ev);
    else if (m->type->form == MODULE_JSON_TREE)
        m->opaque = !put_tree_item(lines, ev);
    else
        put_document_item(lines, ev);
}

void ndjson_module_end(struct ndjson *lines)
{
    struct ndjson_module *m = &lines->module;
    if (m->type != NULL && m->type->form == MODULE_FIELDS)
        end_fields(lines);
    else if (m->type != NULL && m->type->form == MODULE_JSON_TREE)
        end_tree(lines);
    else if (m->type != NULL)
        m->opaque |= m->expect != NDJSON_TREE_DONE;
    if (m->opaque)
        NDJSON_LIT(lines, ",\"opaque\":true");
}
