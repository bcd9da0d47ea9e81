/* functions.h - private to engine/script/: compiled libraries of functions.
 *
 * engine/library.h keeps the libraries of a data set as text. This is their compiled form, which
 * exists from the first command that needs it.
 */
#ifndef ENGINE_SCRIPT_FUNCTIONS_H
#define ENGINE_SCRIPT_FUNCTIONS_H

#include "engine/library.h"
#include "engine/script/run_impl.h"

/* Compiles the libraries of the data set if that was not done. False: *ret_error is a reply, to be
 * freed with engine_scratch_free(). */
bool script_functions_ready(struct engine_scripts *s, char **ret_error);

/* No library has the name in the first line of the code. False: *ret_error is a reply. */
bool script_library_is_new(struct engine_scripts *s, struct rd_slice code, char **ret_error);

/* Compiles a library. It is not linked: its functions cannot be called yet. NULL: *ret_error is a
 * reply. `timed`: the hook script_tick may end it. */
struct script_library *script_library_compile(struct engine_scripts *s, struct rd_slice code,
                                              bool timed, char **ret_error);
void script_library_free(struct engine_scripts *s, struct script_library *lib);

/* Adds it to the libraries; a library of the same name is removed first if `replace`. False: a name
 * is in use; nothing was changed. */
bool script_library_link(struct engine_scripts *s, struct script_library *lib, bool replace,
                         char **ret_error);
/* NULL: there is none. */
struct script_library *script_library_find(struct engine_scripts *s, struct rd_slice name);
/* Takes it out of the libraries. */
void script_library_unlink(struct engine_scripts *s, struct script_library *lib);

/* Any case. NULL: there is none. */
struct script_function *script_function_find(struct engine_scripts *s, struct rd_slice name);

/* Frees the interpreter of functions and all libraries. */
void script_functions_drop(struct engine_scripts *s);

/* Bytes of names and texts, for INFO. */
size_t script_functions_bytes(const struct engine_scripts *s);

#endif
