/* unknown.h - the keys of a rebuilt dataset whose values are not known; private to rebuild/.
 *
 *     struct rebuild_unknown unknown = {0};
 *     if (unknown.n > 0)
 *         rebuild_unknown_before(&unknown, engine, db, &line);
 *     ... the command runs ...
 *     if (unknown.n > 0)
 *         rebuild_unknown_after(&unknown, db, &line);
 *     if (!rebuild_unknown_add(&unknown, db, &line))
 *         ... the engine does not know the command; neither are its keys ...
 *
 * A key becomes unknown by a command that the engine cannot run, and by a command that uses another
 * unknown key to change this one. A command that replaces or removes a key, whatever it was, makes
 * it known again. The names are kept in an engine of their own, as keys without a meaningful value,
 * so that FLUSHDB and SWAPDB have the same effect on them as on the dataset.
 */
#ifndef REBUILD_UNKNOWN_H
#define REBUILD_UNKNOWN_H

#include "base/buf.h"
#include "engine/db.h"
#include "engine/session.h"
#include "rebuild/line.h"

struct rebuild_unknown {
    struct engine *names; /* NULL: there were none so far */
    uint64_t n;
};

void rebuild_unknown_done(struct rebuild_unknown *unknown);

/* Before a command runs: an unknown key that it replaces is removed from the dataset, so that the
 * result does not depend on what is there. */
void rebuild_unknown_before(struct rebuild_unknown *unknown, struct engine *data, unsigned db,
                            const struct rebuild_line *line);

/* After it. True: it used an unknown key, so that its reply means nothing. */
bool rebuild_unknown_after(struct rebuild_unknown *unknown, unsigned db,
                           const struct rebuild_line *line);

/* The same for a command of a script, before it runs. *tainted is false at the start of the script,
 * and true once a command of it has used an unknown key: then what the script writes is unknown. */
void rebuild_unknown_in_script(struct rebuild_unknown *unknown, unsigned db,
                               const struct rebuild_line *line, bool *tainted);

/* All keys that a command can change become unknown. False: the arguments do not say which these
 * are. */
bool rebuild_unknown_add(struct rebuild_unknown *unknown, unsigned db,
                         const struct rebuild_line *line);

/* Whether a command names keys: rebuild_unknown_add() without adding them. */
bool rebuild_unknown_names_keys(const struct rebuild_line *line);

bool rebuild_unknown_has(const struct rebuild_unknown *unknown, unsigned db, struct rd_slice key);
/* One key, for another reason than a command. */
void rebuild_unknown_add_key(struct rebuild_unknown *unknown, unsigned db, struct rd_slice key);

/* Removes the keys from the dataset. */
void rebuild_unknown_remove(const struct rebuild_unknown *unknown, struct engine *data);

/* The first names, quoted: "\"a\", \"b\" of database 3 and 7 more". */
void rebuild_unknown_list(const struct rebuild_unknown *unknown, char *dst, size_t cap);

#endif
