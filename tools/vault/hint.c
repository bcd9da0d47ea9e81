#include "tools/vault/hint.h"

#include "tools/cli/peer_options.h"

const char *vault_hint_text(bool refused, const struct rd_err *err)
{
    if (refused && err->code == RD_ERR_UNSUPPORTED)
        return "scan = yes reads a server that refuses replicas key by key";
    return peer_hint_text(err);
}
