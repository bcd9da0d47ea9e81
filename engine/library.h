/* library.h - function libraries as data; engine/script.h runs them.
 *
 *     struct engine_library lib;
 *     if (!engine_library_parse(code, &lib, &why))       // "#!lua name=mylib"
 *         ...
 *     if (!engine_library_load(e, code, replace, &why))  // FUNCTION LOAD [REPLACE]
 *         ...
 *     engine_library_each(e, me, add_to_list, &err);
 *
 * A library is kept as in a snapshot: its code, whose first line has the engine and the name.
 * Libraries from snapshots (engine/snapshot.h) are here too, and the libraries here are saved with
 * the data set. Errors are those of redis-server, without "ERR ".
 */
#ifndef ENGINE_LIBRARY_H
#define ENGINE_LIBRARY_H

#include "base/buf.h"
#include "engine/engine.h"

struct engine_library {
    struct rd_slice name, language; /* borrowed from the code */
    struct rd_slice code;
};

/* Returns the end of the first line. NULL: there is none, or a NUL byte is before it, which ends
 * the text for servers. */
const uint8_t *engine_library_line_end(struct rd_slice code);

/* Parses the first line. False: *ret_why is the reason. */
bool engine_library_parse(struct rd_slice code, struct engine_library *ret, const char **ret_why);

/* FUNCTION LOAD: without replace, the name must be new. */
bool engine_library_load(struct engine *e, struct rd_slice code, bool replace,
                         const char **ret_why);

/* FUNCTION DELETE. */
bool engine_library_delete(struct engine *e, struct rd_slice name, const char **ret_why);

/* FUNCTION DUMP: appends the payload. */
void engine_library_dump(const struct engine *e, struct rd_buf *out);

/* FUNCTION RESTORE: the payload of FUNCTION DUMP. All or nothing. */
enum engine_library_policy {
    ENGINE_LIBRARY_APPEND, /* an existing name is an error */
    ENGINE_LIBRARY_REPLACE,
    ENGINE_LIBRARY_FLUSH
};
bool engine_library_restore(struct engine *e, struct rd_slice payload,
                            enum engine_library_policy policy, const char **ret_why);

/* Calls fn for each library of a payload until it returns false. False: the payload is damaged. */
bool engine_library_read(struct rd_slice payload, void *ctx,
                         bool (*fn)(void *ctx, const struct engine_library *lib),
                         const char **ret_why);

/* Calls fn for each library, in the order of saving, until it returns false. False: out of
 * memory. */
bool engine_library_each(struct engine *e, void *ctx,
                         bool (*fn)(void *ctx, const struct engine_library *lib),
                         struct rd_err *err);

#endif
