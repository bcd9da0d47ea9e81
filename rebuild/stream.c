#include "rebuild/stream.h"

#include "base/num.h"
#include "base/time.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

/* "00000001-1500.seg", or the lock of a writer that has no segment yet. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);
    return strcmp(name, "capture.lock") == 0 ||
           (len > 10 && name[0] >= '0' && name[0] <= '9' && strcmp(name + len - 4, ".seg") == 0);
}

bool rebuild_stream_is(const char *path)
{
    DIR *dir = opendir(path);
    bool found = false;
    struct dirent *entry;
    if (dir == NULL)
        return false;
    while (!found && (entry = readdir(dir)) != NULL)
        found = is_name(entry->d_name);
    closedir(dir);
    return found;
}

static bool open_reader(struct rebuild_stream *in, bool follow, struct rd_err *err)
{
    const struct repl_capture_reader_opts opts = {.follow = follow,
                                                  .max_whole = REBUILD_STREAM_COMMAND};
    return repl_capture_list(&in->list, &in->fs, err) &&
           (in->list.n > 0 || follow ||
            rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the capture is empty")) &&
           repl_capture_reader_open(&in->reader, &in->fs, &opts, err);
}

bool rebuild_stream_open(struct rebuild_stream *in, const char *path, bool follow,
                         struct rd_err *err)
{
    *in = (struct rebuild_stream){.path = path};
    in->has_fs = rd_fs_open_folder(&in->fs, path, false, err);
    if (in->has_fs && open_reader(in, follow, err))
        return true;
    rd_err_origin(err, path);
    return false;
}

bool rebuild_stream_open_fs(struct rebuild_stream *in, const struct rd_fs *fs, const char *name,
                            struct rd_err *err)
{
    *in = (struct rebuild_stream){.path = name, .fs = *fs};
    if (open_reader(in, false, err))
        return true;
    rd_err_origin(err, name);
    return false;
}

void rebuild_stream_close(struct rebuild_stream *in)
{
    repl_capture_reader_close(in->reader);
    repl_capture_list_done(&in->list);
    if (in->has_fs)
        rd_fs_close_posix(&in->fs);
    *in = (struct rebuild_stream){0};
}

/* ---- positions ---- */

static bool find_chapter(const struct rebuild_stream *in, struct rebuild_place *place)
{
    uint64_t chapter;
    if (place->file[0] != '\0' && !rd_num_get_u64(rd_slice_str(place->file), &chapter))
        return false;
    for (size_t i = in->list.n; i-- > 0;) {
        const struct repl_capture_segment *segment = &in->list.segments[i];
        if (place->file[0] != '\0' ? segment->chapter != chapter
                                   : segment->chapter_start > place->number)
            continue;
        place->index = (size_t)segment->chapter;
        return true;
    }
    return false;
}

bool rebuild_stream_place(const struct rebuild_stream *in, const char *text,
                          struct rebuild_place *ret, struct rd_err *err)
{
    struct rebuild_place place;
    if (!rebuild_place_parse(&place, text, err))
        return false;
    if (!find_chapter(in, &place)) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "no chapter of the capture contains position %.100s", text);
        rd_err_origin(err, in->path);
        return false;
    }
    *ret = place;
    return true;
}

bool rebuild_stream_seek(struct rebuild_stream *in, const struct rebuild_place *place,
                         struct rd_err *err)
{
    if (repl_capture_reader_seek(in->reader, place->index, place->number, err))
        return true;
    rd_err_origin(err, in->path);
    return false;
}

bool rebuild_stream_segment(const struct rebuild_stream *in, const struct rebuild_place *place,
                            size_t *ret, struct rd_err *err)
{
    for (size_t i = in->list.n; i-- > 0;) {
        const struct repl_capture_segment *segment = &in->list.segments[i];
        if (segment->chapter == place->index && segment->start <= place->number) {
            *ret = i;
            return true;
        }
    }
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the capture begins after offset %" PRIu64,
               place->number);
    rd_err_origin(err, in->path);
    return false;
}

static bool refuse_interrupted(const struct rebuild_stream *in, int64_t since_us, int64_t until_us,
                               struct rd_err *err)
{
    char since[RD_TIME_MAX], until[RD_TIME_MAX] = "the end of the capture";
    rd_time_put(since, since_us / 1000 - 1);
    if (until_us != REPL_CAPTURE_NEVER)
        rd_time_put(until, until_us / 1000 + 1);
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "the data at this time is not known: the capture was interrupted from %s to %s",
               since, until);
    rd_err_origin(err, in->path);
    return false;
}

/* The millisecond of time_us must be before or after each interruption. */
static bool check_interruptions(const struct rebuild_stream *in, int64_t time_us,
                                struct rd_err *err)
{
    for (size_t i = 0; i < in->list.n; i++) {
        const struct repl_capture_segment *s = &in->list.segments[i];
        int64_t until_us;
        if (!s->interrupted || time_us + 999 <= s->since_us)
            continue;
        if (!repl_capture_until(s, &in->fs, &until_us, err))
            return false;
        if (until_us == REPL_CAPTURE_NEVER && s->closed)
            until_us = s->latest_us + 1; /* it continues in the next segment */
        if (time_us < until_us)
            return refuse_interrupted(in, s->since_us, until_us, err);
    }
    return true;
}

bool rebuild_stream_segment_at(const struct rebuild_stream *in, int64_t time_us, size_t *ret,
                               struct rd_err *err)
{
    if (!check_interruptions(in, time_us, err))
        return false;
    for (size_t i = in->list.n; i-- > 0;)
        if (in->list.segments[i].start_us <= time_us) {
            *ret = i;
            return true;
        }
    char time[RD_TIME_MAX] = "no time";
    if (in->list.n > 0)
        rd_time_put(time, in->list.segments[0].start_us / 1000);
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the capture begins later, at %s", time);
    rd_err_origin(err, in->path);
    return false;
}

bool rebuild_stream_recorded(const struct rebuild_stream *in)
{
    for (size_t i = 0; i < in->list.n; i++)
        if (!in->list.segments[i].recorded && repl_replid_is_set(&in->list.segments[i].run))
            return false;
    return true;
}

bool rebuild_stream_base(const struct rebuild_stream *in, size_t i, size_t *ret, struct rd_err *err)
{
    if (repl_capture_base(&in->list, i, ret))
        return true;
    const struct repl_capture_segment *s = in->list.segments;
    for (; i > 0 && s[i].continues && !s[i].has_snapshot; i--)
        if (s[i - 1].closed && !repl_capture_follows(&s[i - 1], s[i - 1].end, &s[i], err))
            return false;
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "the capture has no snapshot from which the data could be rebuilt%s",
               i == 0 && s[0].number > 1 ? ": its oldest segments were deleted" : "");
    rd_err_origin(err, in->path);
    return false;
}

bool rebuild_stream_open_snapshot(const struct rebuild_stream *in,
                                  const struct repl_capture_segment *segment, struct rd_src **ret,
                                  struct rd_err *err)
{
    char name[REPL_CAPTURE_NAME], path[PATH_MAX];
    repl_capture_snapshot_name(segment, name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", in->path, name) >= sizeof path)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
    return rd_src_open_file(ret, path, &RD_SRC_OPTS(.regular = true), err);
}

/* ---- events ---- */

bool rebuild_stream_next(struct rebuild_stream *in, struct repl_capture_event *ret,
                         enum repl_capture_status *ret_status, struct rd_err *err)
{
    do
        *ret_status = repl_capture_reader_next(in->reader, ret);
    while (*ret_status == REPL_CAPTURE_EVENT && ret->kind == REPL_CAPTURE_BLANK);
    if (*ret_status == REPL_CAPTURE_FAIL) {
        rd_err_adopt(err, repl_capture_reader_err(in->reader));
        rd_err_origin(err, in->path);
    } else if (*ret_status == REPL_CAPTURE_EVENT && ret->kind == REPL_CAPTURE_PIECE) {
        *ret_status = REPL_CAPTURE_FAIL;
        rd_err_set(err, RD_ERR_LIMIT, ret->offset, "a command is larger than one gigabyte");
        rd_err_origin(err, in->path);
    }
    return *ret_status == REPL_CAPTURE_EVENT;
}
