/* hint.h - advice about errors of the source of a backup.
 */
#ifndef TOOLS_VAULT_HINT_H
#define TOOLS_VAULT_HINT_H

#include "backup/set.h"

/* refused: the server did not send anything. NULL: there is no advice. */
const char *vault_hint_text(bool refused, const struct rd_err *err);

#endif
