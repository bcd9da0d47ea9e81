#include "stat/pattern.h"

#include "base/mem.h"
#include "stat/hash.h"

#include <stdlib.h>

enum { SLOTS = 4 * STAT_PATTERN_CAP, ROOT = 0, WIDTH_MIN = 4, PATH = STAT_PATTERN_DEPTH + 2 };

bool stat_patterns_init(struct stat_patterns *tree, struct rd_slice separator, bool details,
                        struct rd_err *err)
{
    *tree = (struct stat_patterns){
        .separator = separator, .width = STAT_PATTERN_WIDTH, .deepest = STAT_PATTERN_DEPTH};
    if (separator.len >= STAT_PATTERN_PART_MAX / 2)
        tree->separator.len = 0;
    tree->rows = rd_calloc(STAT_PATTERN_CAP, sizeof *tree->rows);
    tree->slots = rd_calloc(SLOTS, sizeof *tree->slots);
    tree->unused = rd_calloc(STAT_PATTERN_CAP, sizeof *tree->unused);
    if (tree->rows == NULL || tree->slots == NULL || tree->unused == NULL) {
        stat_patterns_done(tree);
        return rd_err_nomem(err, STAT_PATTERN_CAP * sizeof *tree->rows);
    }
    if (details && !stat_details_init(&tree->details, STAT_PATTERN_CAP, err)) {
        stat_patterns_done(tree);
        return false;
    }
    for (uint32_t i = STAT_PATTERN_CAP - 1; i > ROOT; i--)
        tree->unused[tree->n_unused++] = i;
    tree->rows[ROOT].used = true;
    tree->rows[ROOT].detail = stat_details_take(&tree->details);
    return true;
}

void stat_patterns_done(struct stat_patterns *tree)
{
    stat_details_done(&tree->details);
    rd_free(tree->rows);
    rd_free(tree->slots);
    rd_free(tree->unused);
    *tree = (struct stat_patterns){0};
}

/* ---- finding a child ---- */

static struct stat_pattern_part star_text(const struct stat_patterns *tree, bool leaf)
{
    struct stat_pattern_part text = {1, {'*'}};
    if (!leaf) {
        memcpy(text.bytes + 1, tree->separator.ptr, tree->separator.len);
        text.len = (uint8_t)(1 + tree->separator.len);
    }
    return text;
}

static bool same(const struct stat_pattern_part *a, const struct stat_pattern_part *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static uint64_t hash_of(uint32_t parent, bool leaf, const struct stat_pattern_part *text)
{
    return stat_hash_more(stat_hash_mix(0, (uint64_t)parent << 1 | leaf), text->bytes, text->len);
}

static uint32_t *find_slot(struct stat_patterns *tree, uint64_t hash, uint32_t parent, bool leaf,
                           const struct stat_pattern_part *text)
{
    size_t i = hash & (SLOTS - 1);
    for (; tree->slots[i] != 0; i = (i + 1) & (SLOTS - 1)) {
        const struct stat_pattern *row = &tree->rows[tree->slots[i] - 1];
        if (row->hash == hash && row->parent == parent && row->leaf == leaf &&
            same(&row->text, text))
            break;
    }
    return &tree->slots[i];
}

static void put_slot(struct stat_patterns *tree, uint32_t at)
{
    struct stat_pattern *row = &tree->rows[at];
    row->hash = hash_of(row->parent, row->leaf, &row->text);
    *find_slot(tree, row->hash, row->parent, row->leaf, &row->text) = at + 1;
}

/* Moves the entries that follow, so that no search ends too early. */
static void remove_slot(struct stat_patterns *tree, uint32_t at)
{
    enum { MASK = SLOTS - 1 };
    size_t hole = tree->rows[at].hash & MASK;
    while (tree->slots[hole] != at + 1)
        hole = (hole + 1) & MASK;
    for (size_t i = (hole + 1) & MASK; tree->slots[i] != 0; i = (i + 1) & MASK) {
        size_t home = tree->rows[tree->slots[i] - 1].hash & MASK;
        if (((i - home) & MASK) < ((i - hole) & MASK))
            continue;
        tree->slots[hole] = tree->slots[i];
        hole = i;
    }
    tree->slots[hole] = 0;
}

/* Searches the list of children; 0: it has none of this text. */
static uint32_t child_of(const struct stat_patterns *tree, uint32_t parent, bool leaf,
                         const struct stat_pattern_part *text)
{
    uint32_t i = tree->rows[parent].child;
    while (i != 0 && (tree->rows[i].leaf != leaf || !same(&tree->rows[i].text, text)))
        i = tree->rows[i].next;
    return i;
}

static uint32_t star_of(const struct stat_patterns *tree, uint32_t parent, bool leaf)
{
    uint32_t i = tree->rows[parent].child;
    while (i != 0 && (tree->rows[i].leaf != leaf || !tree->rows[i].star))
        i = tree->rows[i].next;
    return i;
}

static void link_child(struct stat_patterns *tree, uint32_t parent, uint32_t at)
{
    struct stat_pattern *row = &tree->rows[at];
    row->parent = parent;
    row->level = (uint8_t)(tree->rows[parent].level + 1);
    row->next = tree->rows[parent].child;
    tree->rows[parent].child = at;
    tree->rows[parent].n_children[row->leaf]++;
    put_slot(tree, at);
}

static void unlink_child(struct stat_patterns *tree, uint32_t at)
{
    struct stat_pattern *row = &tree->rows[at], *parent = &tree->rows[row->parent];
    uint32_t *link = &parent->child;
    remove_slot(tree, at);
    while (*link != at)
        link = &tree->rows[*link].next;
    *link = row->next;
    row->next = 0;
    parent->n_children[row->leaf]--;
}

/* ---- merging ---- */

static void fold(struct stat_patterns *tree, uint32_t parent, bool leaf, uint64_t share);
static void merge(struct stat_patterns *tree, uint32_t into, uint32_t from);

/* Both nodes have the same level, so that the levels of the children stay as they are. */
static void merge_children(struct stat_patterns *tree, uint32_t into, uint32_t from)
{
    uint32_t at;
    while ((at = tree->rows[from].child) != 0) {
        bool leaf = tree->rows[at].leaf;
        uint32_t twin = child_of(tree, into, leaf, &tree->rows[at].text);
        if (twin == 0 && tree->rows[into].folded[leaf])
            twin = star_of(tree, into, leaf);
        if (twin != 0) {
            merge(tree, twin, at);
            continue;
        }
        unlink_child(tree, at);
        link_child(tree, into, at);
    }
    for (int leaf = 0; leaf < 2; leaf++)
        if (tree->rows[into].n_children[leaf] > tree->width + 1)
            fold(tree, into, leaf != 0, 10);
}

/* Removes `from`, which is added to `into`. */
static void merge(struct stat_patterns *tree, uint32_t into, uint32_t from)
{
    struct stat_pattern *a = &tree->rows[into], *b = &tree->rows[from];
    a->keys += b->keys;
    a->expires += b->expires;
    a->elements += b->elements;
    a->memory += b->memory;
    a->was.keys += b->was.keys;
    a->was.memory += b->was.memory;
    a->varies |= b->varies || !same(&a->first, &b->first);
    stat_detail_merge(&tree->details, a->detail, b->detail);
    merge_children(tree, into, from);
    for (int leaf = 0; leaf < 2; leaf++)
        if (b->folded[leaf] && star_of(tree, into, leaf != 0) != 0)
            a->folded[leaf] = true;
    unlink_child(tree, from);
    *b = (struct stat_pattern){0};
    tree->unused[tree->n_unused++] = from;
}

/* Merges the children of a kind into "*", except those with a share (1/n) of their parent. */
static void fold(struct stat_patterns *tree, uint32_t parent, bool leaf, uint64_t share)
{
    uint64_t whole = stat_pattern_most(&tree->rows[parent]);
    uint32_t star = star_of(tree, parent, leaf);
    for (uint32_t at = tree->rows[parent].child, next; at != 0; at = next) {
        struct stat_pattern *row = &tree->rows[at];
        next = row->next;
        if (row->leaf != leaf || row->star || stat_pattern_most(row) >= whole / share)
            continue;
        if (star != 0) {
            merge(tree, star, at);
            continue;
        }
        star = at;
        remove_slot(tree, at);
        row->star = row->varies = true;
        row->text = star_text(tree, leaf);
        put_slot(tree, at);
    }
    tree->rows[parent].folded[leaf] = star != 0;
}

static void fold_wide(struct stat_patterns *tree)
{
    for (uint32_t i = 0; i < STAT_PATTERN_CAP; i++)
        for (int leaf = 0; leaf < 2; leaf++)
            if (tree->rows[i].used && tree->rows[i].n_children[leaf] > tree->width + 1)
                fold(tree, i, leaf != 0, i == ROOT ? 256 : 10);
}

/* Removes the children of a node, whose keys become its own. */
static void cut(struct stat_patterns *tree, uint32_t parent)
{
    uint32_t at;
    while ((at = tree->rows[parent].child) != 0) {
        cut(tree, at);
        stat_details_give(&tree->details, tree->rows[at].detail);
        unlink_child(tree, at);
        tree->rows[at] = (struct stat_pattern){0};
        tree->unused[tree->n_unused++] = at;
    }
    tree->rows[parent].folded[0] = tree->rows[parent].folded[1] = false;
}

static void cut_deep(struct stat_patterns *tree)
{
    for (uint32_t i = 0; i < STAT_PATTERN_CAP; i++)
        if (tree->rows[i].used && tree->rows[i].level == tree->deepest)
            cut(tree, i);
}

/* Makes room: first narrower nodes, then fewer levels. */
static void make_room(struct stat_patterns *tree)
{
    while (tree->n_unused < STAT_PATTERN_CAP / 4) {
        if (tree->width > WIDTH_MIN) {
            tree->width /= 2;
            fold_wide(tree);
        } else {
            tree->deepest--;
            cut_deep(tree);
        }
    }
}

/* ---- adding ---- */

static bool is_star(const struct stat_patterns *tree, bool leaf,
                    const struct stat_pattern_part *text)
{
    struct stat_pattern_part star = star_text(tree, leaf);
    return same(&star, text);
}

static uint32_t make_child(struct stat_patterns *tree, uint32_t parent, bool leaf,
                           const struct stat_pattern_part *text,
                           const struct stat_pattern_part *first)
{
    uint32_t at = tree->unused[--tree->n_unused];
    struct stat_pattern *row = &tree->rows[at];
    *row = (struct stat_pattern){
        .used = true, .leaf = leaf, .text = *text, .first = *first, .parent = parent};
    row->star = is_star(tree, leaf, text);
    row->varies = row->star || first->len == 0;
    row->detail = stat_details_take(&tree->details);
    link_child(tree, parent, at);
    return at;
}

static bool is_full(const struct stat_patterns *tree, uint32_t parent, bool leaf)
{
    unsigned width = parent == ROOT && !leaf ? STAT_PATTERN_ROOT_MAX : tree->width;
    return tree->rows[parent].n_children[leaf] >= width;
}

/* Returns the child, or 0 after the tree has changed: begin again. */
static uint32_t enter(struct stat_patterns *tree, uint32_t parent, bool leaf,
                      const struct stat_pattern_part *text, const struct stat_pattern_part *first)
{
    uint32_t at = *find_slot(tree, hash_of(parent, leaf, text), parent, leaf, text);
    if (at != 0)
        return at - 1;
    if (tree->rows[parent].folded[leaf] && (at = star_of(tree, parent, leaf)) != 0)
        return at;
    if (is_full(tree, parent, leaf)) {
        fold(tree, parent, leaf, parent == ROOT ? 256 : 10);
        if (tree->rows[parent].folded[leaf])
            return 0;
    }
    if (tree->n_unused == 0) {
        make_room(tree);
        return 0;
    }
    return make_child(tree, parent, leaf, text, first);
}

static void keep_first(struct stat_pattern_part *ret, struct rd_slice part)
{
    ret->len = part.len <= STAT_PATTERN_PART_MAX ? (uint8_t)part.len : 0;
    memcpy(ret->bytes, part.ptr, ret->len);
}

/* The end of the next part, after its separator; the end of the name if it is the last one. */
static size_t part_end(struct rd_slice separator, struct rd_slice name, size_t from, bool *ret_leaf)
{
    const uint8_t *at = NULL;
    if (separator.len > 0)
        at = memmem(name.ptr + from, name.len - from, separator.ptr, separator.len);
    *ret_leaf = at == NULL;
    return at == NULL ? name.len : (size_t)(at - name.ptr) + separator.len;
}

/* The node of the part name[from, end) below `parent`. */
static uint32_t enter_part(struct stat_patterns *tree, uint32_t parent, bool leaf,
                           struct rd_slice part)
{
    struct stat_pattern_part text, first;
    size_t end = leaf ? 0 : tree->separator.len;
    bool fits = stat_pattern_normalise(rd_slice(part.ptr, part.len - end), &text) &&
                text.len + end <= STAT_PATTERN_PART_MAX;
    keep_first(&first, part);
    if (!fits) {
        text = star_text(tree, leaf);
    } else if (end > 0) {
        memcpy(text.bytes + text.len, tree->separator.ptr, end);
        text.len = (uint8_t)(text.len + end);
    }
    uint32_t at = enter(tree, parent, leaf, &text, &first);
    if (at != 0 && !tree->rows[at].varies && !same(&tree->rows[at].first, &first))
        tree->rows[at].varies = true;
    return at;
}

/* Fills in the nodes from the root to the leaf and returns their number; 0: begin again. */
static size_t resolve(struct stat_patterns *tree, struct rd_slice name, uint32_t path[PATH])
{
    size_t n = 1, from = 0;
    bool leaf = false;
    for (path[0] = ROOT; !leaf && n <= tree->deepest; n++) {
        size_t end = part_end(tree->separator, name, from, &leaf);
        if (n == STAT_PATTERN_DEPTH) {
            leaf = true;
            end = name.len;
        }
        path[n] = enter_part(tree, path[n - 1], leaf, rd_slice(name.ptr + from, end - from));
        if (path[n] == 0)
            return 0;
        from = end;
    }
    return n;
}

void stat_patterns_add(struct stat_patterns *tree, struct stat_noted *noted)
{
    const struct stat_key *key = noted->key;
    uint32_t path[PATH];
    size_t n;
    do
        n = resolve(tree, key->name, path);
    while (n == 0);
    for (size_t i = 0; i < n; i++) {
        struct stat_pattern *row = &tree->rows[path[i]];
        row->keys++;
        row->expires += key->expire_ms != RDB_NO_EXPIRE;
        row->elements += key->elements;
        row->memory += key->memory;
        stat_detail_add(&tree->details, row->detail, noted);
    }
}

void stat_patterns_continue(struct stat_patterns *tree)
{
    for (uint32_t i = 0; i < STAT_PATTERN_CAP; i++) {
        struct stat_pattern *row = &tree->rows[i];
        row->was = (struct stat_share){row->keys, row->memory};
        row->keys = row->expires = row->elements = row->memory = 0;
        stat_detail_clear(&tree->details, row->detail);
    }
}

/* ---- results ---- */

static int by_most(const void *va, const void *vb)
{
    const struct stat_pattern_leaf *a = va, *b = vb;
    if (a->memory != b->memory)
        return a->memory < b->memory ? 1 : -1;
    return (a->at > b->at) - (a->at < b->at);
}

bool stat_patterns_leaves(const struct stat_patterns *tree, struct stat_pattern_leaf **ret,
                          size_t *ret_n, struct rd_err *err)
{
    size_t n = 0;
    struct stat_pattern_leaf *list = rd_calloc(STAT_PATTERN_CAP, sizeof *list);
    if (list == NULL)
        return rd_err_nomem(err, STAT_PATTERN_CAP * sizeof *list);
    for (uint32_t i = ROOT + 1; i < STAT_PATTERN_CAP; i++)
        if (tree->rows[i].used && tree->rows[i].child == 0)
            list[n++] = (struct stat_pattern_leaf){stat_pattern_most(&tree->rows[i]), i};
    qsort(list, n, sizeof *list, by_most);
    *ret = list;
    *ret_n = n;
    return true;
}

struct rd_slice stat_pattern_part(const struct stat_pattern *row)
{
    const struct stat_pattern_part *part = row->varies ? &row->text : &row->first;
    return rd_slice(part->bytes, part->len);
}

struct rd_slice stat_pattern_name(const struct stat_patterns *tree, uint32_t at,
                                  uint8_t dst[STAT_PATTERN_NAME_MAX])
{
    uint8_t *p = dst + STAT_PATTERN_NAME_MAX;
    if (!tree->rows[at].leaf && tree->rows[at].child == 0 && at != ROOT)
        *--p = '*';
    for (; at != ROOT; at = tree->rows[at].parent) {
        struct rd_slice part = stat_pattern_part(&tree->rows[at]);
        p -= part.len;
        memcpy(p, part.ptr, part.len);
    }
    return rd_slice(p, (size_t)(dst + STAT_PATTERN_NAME_MAX - p));
}

bool stat_patterns_largest(const struct stat_patterns *tree, size_t max,
                           void (*each)(void *ctx, const struct stat_pattern *row,
                                        struct rd_slice name),
                           void *ctx, size_t *ret_more, struct rd_err *err)
{
    struct stat_pattern_leaf *list;
    size_t n;
    uint8_t buf[STAT_PATTERN_NAME_MAX];
    if (!stat_patterns_leaves(tree, &list, &n, err))
        return false;
    for (size_t i = 0; i < n && i < max; i++)
        each(ctx, &tree->rows[list[i].at], stat_pattern_name(tree, list[i].at, buf));
    rd_free(list);
    *ret_more = n > max ? n - max : 0;
    return true;
}
