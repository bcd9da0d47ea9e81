/* foreign.h - files of another kind, where a snapshot or a log was expected.
 */
#ifndef TOOLS_FOREIGN_H
#define TOOLS_FOREIGN_H

/* What a file looks like by its first bytes, and what to do with it: a hint for an error at its
 * beginning. NULL where it looks like nothing that is known, cannot be read, or is what `tool`
 * reads. */
const char *foreign_hint(const char *path, const char *tool);

#endif
