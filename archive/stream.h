/* stream.h - the replication stream of a target in a repository, as segments of captures.
 *
 *     TARGET/stream/RUN/CHAPTER/NUMBER-START-END-FIRST-LATEST-SINCE-UNTIL.seg[.lz4|.gz][.sealed]
 *     TARGET/stream/RUN/CHAPTER/NUMBER-START-END-FIRST-LATEST-SINCE-UNTIL-LAST.seg[…][…]
 *     TARGET/stream/lock       elsewhere than in a folder: TARGET/locks/stream/… (archive/lock.h)
 *
 * RUN is the id of one capture (archive_make_id()). CHAPTER is "00000001-REPLID", followed by
 * "-continues" if its offsets continue those of the previous chapter. The name of a segment has its
 * number, the offsets at which it begins and ends, and the earliest and the latest time of its
 * commands in Unix milliseconds, and then the interruption of the capture that it has (or 0-0). A
 * name without SINCE-UNTIL is that of an older version, which did not record them. A segment that
 * was made of several (repl/capture_merge.h) has the number of the last of them, too. So one
 * listing shows what a repository contains and, without a download, which segments are needed for a
 * position in the stream.
 *
 *     struct archive_stream stream;
 *     if (!archive_stream_list(&repo, &stream, &err))
 *         ...
 *     for (size_t i = 0; i < stream.n; i = end) {
 *         end = archive_stream_chain(&stream, i);
 *         ... segments i to end - 1 follow each other without a gap ...
 *     }
 *     archive_stream_done(&stream);
 *
 * A name is not trusted: it is part of the seal, or of the digest at the end of the object, and
 * archive_segment_matches() compares it with the header of the segment.
 */
#ifndef ARCHIVE_STREAM_H
#define ARCHIVE_STREAM_H

#include "archive/pipe.h"
#include "archive/repo.h"
#include "repl/capture.h"

struct archive_segment {
    char run[ARCHIVE_ID_MAX];
    char replid[REPL_REPLID_LEN + 1];
    uint64_t chapter;
    bool continues; /* the chapter continues the offsets of the previous chapter */
    uint64_t number, start, end;
    uint64_t last; /* of one that was made of several: the number of the last of them; else 0 */
    int64_t first_ms, latest_ms; /* the earliest and the latest time of its commands; 0 if it has
                                    none */
    bool recorded;               /* interruptions are recorded: docs/format/capture.md */
    int64_t since_ms, until_ms;  /* of the interruption: only these two and what is before and after
                                    them is known. 0: there is none */
    enum archive_compression compression;
    bool sealed;
    uint64_t bytes; /* of the object */
};

struct archive_stream {
    struct archive_segment *segments; /* by run and number; each part of the stream once */
    size_t n;
    struct archive_segment *covered; /* those of which `segments` has the contents in a segment that
                                        was made of several; by run and number */
    size_t n_covered;
    size_t n_overlaps; /* segments that were made of several and overlap others in part */
    size_t n_others;   /* objects whose names are not those of segments */
    char other[ARCHIVE_NAME_MAX]; /* the first of them, from RUN on */
    size_t n_refused;             /* segments that are not sealed, although there is a key */
    char refused[ARCHIVE_NAME_MAX];
};

/* The lock and the remains of an interrupted upload are ignored. Segments that are not sealed are
 * left out if repo->ring requires seals: anybody may have written them. Where the store has both a
 * segment that was made of several and some of these, only one of them is in `segments`, so that
 * each command is there once: of all choices, one that continues the stream the furthest. */
bool archive_stream_list(struct archive_repo *repo, struct archive_stream *ret, struct rd_err *err);
void archive_stream_done(struct archive_stream *stream);
/* Those of stream->covered that a segment contains: the index of the first one. */
size_t archive_stream_covered(const struct archive_stream *stream,
                              const struct archive_segment *whole, size_t *ret_n);

/* Lists of segments, as listings make them. Appends a copy; false: out of memory, and the list is
 * unchanged. *list is NULL if *n is 0. */
bool archive_segment_append(struct archive_segment **list, size_t *n,
                            const struct archive_segment *segment);
/* For qsort(): by run and number. */
int archive_segment_compare(const void *a, const void *b);

/* The last number that is in a segment. */
static inline uint64_t archive_segment_last(const struct archive_segment *segment)
{
    return segment->last != 0 ? segment->last : segment->number;
}

/* Whether segment a has everything that b has, by their names. */
bool archive_segment_contains(const struct archive_segment *a, const struct archive_segment *b);

/* Whether segment b directly follows a. */
bool archive_segment_follows(const struct archive_segment *a, const struct archive_segment *b);

/* The number of segments that were lost between two neighbours of a listing. Removing what no set
 * needs (archive_stream_needed()) leaves no such hole: it removes a chain from its beginning. */
uint64_t archive_segment_lost(const struct archive_segment *a, const struct archive_segment *b);

/* The end of the run of segments from i on that follow each other: the index after the last one. */
size_t archive_stream_chain(const struct archive_stream *stream, size_t i);

/* Whether `offset` of a history is at the beginning or the end of a segment, or in it. */
bool archive_segment_has(const struct archive_segment *segment, const char *replid,
                         uint64_t offset);

/* The segment of a chain (begin to end - 1) from which the stream continues after the data of a
 * set; SIZE_MAX: the set is not a base for the chain. O(log n). */
size_t archive_stream_base(const struct archive_stream *stream, size_t begin, size_t end,
                           const struct archive_manifest *m);

/* The range in which a chain gives the data of every moment, except in its outages
 * (archive/moments.h).
 */
struct archive_range {
    uint64_t from, to;      /* offsets */
    int64_t from_ms, to_ms; /* Unix time; certain, and a little more may be possible; to_ms is
                               less if no moment is certain */
    size_t bases;           /* sets that are a base for a part of it */
};

/* False: no good set is a base for the chain. */
bool archive_stream_range(const struct archive_stream *stream, size_t begin, size_t end,
                          const struct archive_sets *sets, struct archive_range *ret);

/* Sets needed[i] if a set that stays (why[k] != 0, see archive/retain.h; NULL: all) is the base for
 * segment i or for an earlier one of its chain, even if it is not good. A segment after missing
 * ones is needed if the one before them is, or if they have the offset of a set that stays: the
 * store may not have listed them. A segment whose base may not be complete yet is needed, too: it
 * is newer than all good sets that stay (sets in the future do not count for that), or no set is a
 * base for its chain or for a later one. */
void archive_stream_needed(const struct archive_stream *stream, const struct archive_sets *sets,
                           const unsigned *why, bool *needed);

/* Clears needed[i] where the stream is older than it has to be. It is kept from a good set on that
 * stays: from the newest one that is at least age_ms older than the newest command, and of what
 * that leaves, from the oldest one from which on the objects have at most max_bytes, or else from
 * the newest. 0: no limit. So every moment of the last age_ms stays as it was, if max_bytes allows
 * it; without a set to begin with, everything does. */
void archive_stream_limit(const struct archive_stream *stream, const struct archive_sets *sets,
                          const unsigned *why, uint64_t age_ms, uint64_t max_bytes, bool *needed);

/* The name of the object in the repository, which is also bound into its seal. RD_ERR_LIMIT. */
bool archive_segment_name(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo,
                          const struct archive_segment *segment, struct rd_err *err);
void archive_segment_bound(char ret[ARCHIVE_NAME_MAX], const struct archive_segment *segment);
/* The reverse of archive_segment_bound(): accepts only names that it makes. */
bool archive_segment_parse(const char *bound, struct archive_segment *ret);

/* The plain bytes of a segment. ring is borrowed. */
bool archive_segment_open(struct archive_repo *repo, const struct archive_segment *segment,
                          const struct rd_seal_ring *ring, struct rd_src **ret, struct rd_err *err);

/* What the seals say about the order of segments, while they are read one after another: begin with
 * zeros. */
struct archive_order {
    struct rd_seal_info info; /* of the segment that was opened last */
    bool any;
    char run[ARCHIVE_ID_MAX];
    uint64_t number; /* the last one of the segment, and its SHA-256 */
    uint8_t sha256[REPL_CAPTURE_SHA];
    unsigned version; /* the newest version of the seals of the run */
};

/* archive_segment_open(), which also notes what the seal says. */
bool archive_segment_open_next(struct archive_repo *repo, const struct archive_segment *segment,
                               const struct rd_seal_ring *ring, struct archive_order *order,
                               struct rd_src **ret, struct rd_err *err);

/* Whether the segment with this header (verified, and matching its name) was written after the one
 * that was read before it: RD_ERR_CORRUPT if its seal names another one, or is older. */
bool archive_order_check(struct archive_order *order, const struct archive_segment *segment,
                         const struct repl_capture_segment *header, struct rd_err *err);

/* The SHA-256 that the seal of the next segment names. */
const uint8_t *archive_order_digest(const struct repl_capture_segment *header);

/* Whether the header and the end of a segment match its name: RD_ERR_CORRUPT if not. */
bool archive_segment_matches(const struct archive_segment *segment,
                             const struct repl_capture_segment *header, struct rd_err *err);

/* Whether opening and reading the object to its end proves its name. For objects that are neither
 * sealed nor compressed, compare the header and the times of the commands. */
bool archive_segment_proves_name(const struct archive_segment *segment);

/* Fills in the fields that the header of a segment has. */
void archive_segment_of(struct archive_segment *ret, const char *run,
                        const struct repl_capture_segment *header);

/* The times of a segment: begin with first_ms = INT64_MAX and latest_ms = 0, note each command, and
 * end, which also notes the interruption. */
void archive_segment_note_time(struct archive_segment *segment, int64_t time_us);
void archive_segment_end_times(struct archive_segment *segment,
                               const struct repl_capture_segment *header);

/* ---- changes, under the lock of the stream (ARCHIVE_LOCK_STREAM), or that of merging
 * (ARCHIVE_LOCK_MERGE). prune removes segments under the lock of the sets. ---- */

/* A new object for the segment. */
bool archive_segment_put(struct archive_repo *repo, const struct archive_segment *segment,
                         struct rd_sink **ret, struct rd_err *err);
/* To be called after a put that succeeded, which does not replace an object: whether the store
 * shows it, with at least so many bytes. A store that has lost a part of it without saying so would
 * refuse the segment from then on, so an object that is shorter is removed. */
bool archive_segment_kept(struct archive_repo *repo, const struct archive_segment *segment,
                          uint64_t bytes, struct rd_err *err);
bool archive_segment_remove(struct archive_repo *repo, const struct archive_segment *segment,
                            struct rd_err *err);
/* Whether the repository has the segment under this name, and its plain bytes are these. Reads the
 * whole object. ARCHIVE_STORE_OPAQUE: the store gave all bytes of the object, and they are not
 * those of a segment with this name. */
enum archive_store_proof archive_segment_prove(struct archive_repo *repo,
                                               const struct archive_segment *segment,
                                               const struct rd_seal_ring *ring,
                                               const struct archive_store_sum *plain,
                                               struct rd_err *err);
/* Removes what interrupted uploads have left and a listing does not show. The stream must be
 * locked. */
void archive_stream_clean(struct archive_repo *repo);
/* Removes the folders of captures that have no segment. */
void archive_stream_tidy(struct archive_repo *repo);

#endif
