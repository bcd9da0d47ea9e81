/* put.c - prints or sums up the selected commands. */
#include "base/mem.h"
#include "tools/show/show.h"

#include <inttypes.h>

static bool new_lines(struct rd_buf **ret, uint64_t n, struct rd_err *err)
{
    if (n == 0)
        return true;
    *ret = rd_calloc((size_t)n, sizeof **ret);
    return *ret != NULL || rd_err_nomem(err, (size_t)n * sizeof **ret);
}

static void free_lines(struct rd_buf **lines, uint64_t n)
{
    for (uint64_t i = 0; *lines != NULL && i < n; i++)
        rd_buf_done(&(*lines)[i]);
    rd_free(*lines);
    *lines = NULL;
}

bool show_put_begin(struct show *show, struct rd_err *err)
{
    if (show->tail > SHOW_TAIL_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--tail must be at most 1000000");
    if (show->before > SHOW_CONTEXT_MAX || show->after > SHOW_CONTEXT_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "-A and -B must be at most %d",
                          SHOW_CONTEXT_MAX);
    bool json = show->cli->json || show->ndjson;
    show->form = (struct show_form){.json = json,
                                    .numbered = show->cli->verbose > 0,
                                    .longest = show->cut != 0 ? (size_t)show->cut : SHOW_LONG,
                                    .cut = show->cut != 0 ? (size_t)show->cut : SHOW_SHORT};
    if (show->full)
        show->form.longest = SIZE_MAX;
    return new_lines(&show->ring, show->tail, err) && new_lines(&show->held, show->before, err) &&
           (!show->stats || show_stats_init(&show->sums, err)) &&
           (show->html_path == NULL || show_timeline_new(&show->sums.timeline, err));
}

bool show_put_notes(const struct show *show)
{
    return !show->count && !show->stats && !show_pick_active(&show->pick);
}

/* ---- lines ---- */

static void write_line(struct show *show, const struct rd_buf *line)
{
    bool json = show->cli->json;
    if (json)
        rd_sink_write(show->cli->out.out, show->n_shown == 0 ? "\n" : ",\n",
                      show->n_shown == 0 ? 1 : 2);
    show->n_shown++;
    if (json) {
        rd_sink_write(show->cli->out.out, line->ptr, line->len);
        return;
    }
    if (show->out != NULL) {
        rd_sink_write(show->out, line->ptr, line->len);
        rd_sink_byte(show->out, '\n');
        return;
    }
    fwrite(line->ptr, 1, line->len, stdout);
    putchar('\n');
}

static void swap(struct rd_buf *a, struct rd_buf *b)
{
    struct rd_buf was = *a;
    *a = *b;
    *b = was;
}

void show_put_line(struct show *show)
{
    if (show->ring == NULL)
        write_line(show, &show->line);
    else
        swap(&show->ring[show->n_ring++ % show->tail], &show->line);
}

bool show_put_caught_up(struct show *show, struct rd_err *err)
{
    if (show->ring != NULL) {
        uint64_t n = show->n_ring < show->tail ? show->n_ring : show->tail;
        for (uint64_t i = show->n_ring - n; i < show->n_ring; i++)
            write_line(show, &show->ring[i % show->tail]);
        show->n_ring = 0;
        free_lines(&show->ring, show->tail);
    }
    rd_err_reset(err); /* an error of the output, not of the input */
    if (show->cli->json && !rd_sink_flush(show->cli->out.out)) {
        rd_err_adopt(err, rd_sink_err(show->cli->out.out));
        return false;
    }
    return cli_flush(err);
}

/* ---- commands ---- */

static bool make_line(struct show *show, const struct show_item *item, bool context,
                      struct rd_err *err)
{
    show->form.context = context;
    rd_buf_reset(&show->line);
    return show_line_item(&show->line, item, &show->form) || rd_err_nomem(err, show->line.len);
}

/* A command that is not selected may be context. */
static bool put_beside(struct show *show, const struct show_item *item, struct rd_err *err)
{
    if (show->owed == 0 && show->before == 0) {
        show->gap = true;
        return true;
    }
    if (!make_line(show, item, true, err))
        return false;
    if (show->owed > 0) {
        show->owed--;
        show_put_line(show);
    } else {
        show->gap = show->gap || show->n_held >= show->before;
        swap(&show->held[(show->first_held + show->n_held) % show->before], &show->line);
        if (show->n_held < show->before)
            show->n_held++;
        else
            show->first_held++;
    }
    return true;
}

/* A separator between groups of lines, as in grep. */
static void put_gap(struct show *show)
{
    bool apart = show->gap && show->n_seen > 0 && (show->before > 0 || show->after > 0);
    show->gap = false;
    if (!apart || show->form.json)
        return;
    rd_buf_reset(&show->line);
    if (rd_buf_add(&show->line, "--", 2))
        show_put_line(show);
}

static bool put_wanted(struct show *show, const struct show_item *item, struct rd_err *err)
{
    put_gap(show);
    for (uint64_t i = 0; i < show->n_held; i++) {
        swap(&show->held[(show->first_held + i) % show->before], &show->line);
        show_put_line(show);
    }
    show->n_held = show->first_held = 0;
    show->owed = show->after;
    if (!make_line(show, item, false, err))
        return false;
    show_put_line(show);
    return true;
}

bool show_put_item(struct show *show, const struct show_item *item, struct rd_err *err)
{
    bool ok = true;
    bool wanted = show_pick_wants(&show->pick, item);
    if (show->stats && wanted)
        show_stats_add(&show->sums, item);
    if (!show->stats && !show->count)
        ok = wanted ? put_wanted(show, item, err) : put_beside(show, item, err);
    show->n_seen += wanted;
    return ok;
}

void show_put_end(struct show *show)
{
    struct cli *cli = show->cli;
    (void)show_put_caught_up(show, NULL); /* cli_end() reports the error */
    if (cli->json) {
        json_end(&cli->out);
        json_put_uint(&cli->out, "commands", show->n_seen);
        if (show->stats)
            show_report_json(&show->sums, &cli->out, (size_t)show->top);
    } else if (show->stats && show->html_path == NULL) {
        show_report_text(&show->sums, (size_t)show->top);
    } else if (show->count) {
        printf("%" PRIu64 "\n", show->n_seen);
    }
}

void show_put_done(struct show *show)
{
    free_lines(&show->ring, show->tail);
    free_lines(&show->held, show->before);
    rd_buf_done(&show->line);
    show_stats_done(&show->sums);
}
