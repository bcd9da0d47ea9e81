/* timeline.c - what the page needs beside the totals: the first commands of each span of time, and
 * the commands of each span by name. */
#include "base/mem.h"
#include "tools/show/show.h"

static const size_t series_size = SHOW_SPANS * sizeof(uint32_t);

bool show_timeline_new(struct show_timeline **ret, struct rd_err *err)
{
    struct show_timeline *line = rd_calloc(1, sizeof *line);
    if (line == NULL)
        return rd_err_nomem(err, sizeof *line);
    line->samples = rd_calloc(SHOW_SPANS, sizeof *line->samples);
    line->series[0] = rd_calloc(SHOW_SERIES, series_size);
    line->series[1] = rd_calloc(SHOW_SERIES, series_size);
    if (line->samples != NULL && line->series[0] != NULL && line->series[1] != NULL) {
        *ret = line;
        return true;
    }
    show_timeline_free(line);
    return rd_err_nomem(err, SHOW_SERIES * series_size);
}

static void clear(struct show_sample *sample)
{
    for (size_t i = 0; i < sample->n; i++)
        rd_free(sample->lines[i]);
    sample->n = 0;
}

void show_timeline_free(struct show_timeline *line)
{
    if (line == NULL)
        return;
    for (size_t i = 0; line->samples != NULL && i < SHOW_SPANS; i++)
        clear(&line->samples[i]);
    rd_buf_done(&line->buf);
    rd_free(line->samples);
    rd_free(line->series[0]);
    rd_free(line->series[1]);
    rd_free(line);
}

/* The lines of b that have no room in a are dropped. */
static void join(struct show_sample *a, struct show_sample *b)
{
    size_t i = 0;
    for (; i < b->n && a->n < SHOW_SAMPLES; i++)
        a->lines[a->n++] = b->lines[i];
    for (; i < b->n; i++)
        rd_free(b->lines[i]);
    b->n = 0;
}

void show_timeline_widen(struct show_timeline *line)
{
    for (size_t i = 0; i < SHOW_SPANS / 2; i++) {
        struct show_sample both = line->samples[2 * i];
        line->samples[2 * i].n = 0;
        join(&both, &line->samples[2 * i + 1]);
        line->samples[i] = both;
    }
    for (size_t i = SHOW_SPANS / 2; i < SHOW_SPANS; i++)
        line->samples[i].n = 0;
    for (size_t s = 0; s < (size_t)2 * SHOW_SERIES; s++) {
        uint32_t *at = line->series[s / SHOW_SERIES] + s % SHOW_SERIES * SHOW_SPANS;
        for (size_t i = 0; i < SHOW_SPANS / 2; i++)
            at[i] = at[2 * i] + at[2 * i + 1];
        memset(at + SHOW_SPANS / 2, 0, series_size / 2);
    }
}

void show_timeline_add(struct show_timeline *line, const struct show_item *item, size_t span,
                       size_t command, size_t prefix)
{
    const struct show_form form = {.longest = SHOW_SHORT, .cut = SHOW_SHORT};
    struct show_sample *sample = &line->samples[span];
    if (command < SHOW_SERIES)
        line->series[0][command * SHOW_SPANS + span]++;
    if (prefix < SHOW_SERIES)
        line->series[1][prefix * SHOW_SPANS + span]++;
    if (sample->n == SHOW_SAMPLES)
        return;
    rd_buf_reset(&line->buf);
    char *copy = NULL;
    if (show_line_item(&line->buf, item, &form)) {
        size_t len = line->buf.len < SHOW_SAMPLE_MAX ? line->buf.len : SHOW_SAMPLE_MAX;
        copy = rd_alloc(len + 4);
        if (copy != NULL) {
            memcpy(copy, line->buf.ptr, len);
            memcpy(copy + len, len < line->buf.len ? "..." : "", len < line->buf.len ? 4 : 1);
        }
    }
    line->nomem |= copy == NULL;
    if (copy != NULL)
        sample->lines[sample->n++] = copy;
}
