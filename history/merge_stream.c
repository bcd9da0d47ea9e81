/* Streams: entries by ID. */
#include "history/merge_impl.h"

#include "base/endian.h"

#include <inttypes.h>
#include <stdio.h>

static const struct history_seq empty;

static const struct history_seq *seq_of(const struct history_mirror *m)
{
    return history_is_there(m) ? &m->seq : &empty;
}

static const struct history_element *find(const struct history_seq *seq, struct rd_slice id)
{
    size_t i = history_seq_search(seq, id);
    if (i == seq->n || !rd_slice_eq(history_element_name(history_seq_at(seq, i)), id))
        return NULL;
    return history_seq_at(seq, i);
}

/* Whether the commands did anything but add entries. */
static bool only_added(const struct history_merge *m)
{
    const struct history_seq *before = seq_of(m->before);
    static const struct history_map none;
    const struct history_map *was = history_is_there(m->before) ? &m->before->beside : &none;
    const struct history_map *is = history_is_there(m->after) ? &m->after->beside : &none;
    size_t at = 0;
    for (size_t i = 0; i < before->n; i++)
        if (find(seq_of(m->after), history_element_name(history_seq_at(before, i))) == NULL)
            return false;
    for (struct history_element *e; (e = history_map_next(is, &at)) != NULL;) {
        const struct history_element *other = history_map_find(was, history_element_name(e));
        if (other == NULL ||
            !rd_slice_eq(history_element_content(other), history_element_content(e)))
            return false;
    }
    return was->n == is->n;
}

/* An added entry goes. An ID is never used again, so that it cannot have changed. To put it back
 * needs the stream as it is. */
static bool remove_added(struct history_merge *m)
{
    const struct history_seq *after = seq_of(m->after);
    bool ok = true;
    uint64_t was = m->changes;
    for (size_t i = 0; ok && i < after->n; i++) {
        struct rd_slice id = history_element_name(history_seq_at(after, i));
        char text[48];
        if (find(seq_of(m->before), id) != NULL || find(seq_of(m->now), id) == NULL)
            continue;
        snprintf(text, sizeof text, "%" PRIu64 "-%" PRIu64, rd_get_be64(id.ptr),
                 rd_get_be64(id.ptr + 8));
        const struct rd_slice word = rd_slice_str(text);
        m->changes++;
        ok = history_merge_put(m, &m->redo, "XDEL", &word, 1);
    }
    if (!ok || m->changes == was)
        return ok;
    return history_merge_create(m, m->now, m->dump_now, &m->back);
}

bool history_merge_stream(struct history_merge *m, struct rd_err *err)
{
    if (only_added(m))
        return remove_added(m) || rd_err_nomem(err, 0);
    return history_merge_whole(m, err);
}
