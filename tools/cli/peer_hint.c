/* peer_hint.c - hints for errors of connections. */
#include "tools/cli/peer_options.h"

#include <errno.h>

#include "client/peer.h"

#define HINT_PASSWORD "set a password: REDISCLI_AUTH, --askpass, --pass-file FILE, or in the URL"
#define HINT_WRONG    "user name or password is wrong, or the user is disabled"
#define HINT_NONE     "the server does not require a password"
#define HINT_TLS      "the server may require TLS (rediss:// or --tls); see the server's log"

static const struct {
    unsigned reason;
    const char *hint;
} hints[] = {
    {RESP_REASON_NOAUTH, HINT_PASSWORD},
    {RESP_REASON_NOAUTH_OLD, HINT_PASSWORD},
    {RESP_REASON_WRONGPASS, HINT_WRONG},
    {RESP_REASON_WRONGPASS_OLD, HINT_WRONG},
    {RESP_REASON_NO_PASSWORD, HINT_NONE},
    {RESP_REASON_NO_PASSWORD_OLD, HINT_NONE},
    {RESP_REASON_NOPERM, "the user's ACL does not allow this command or these keys"},
    {RESP_REASON_DENIED,
     "the server is in protected mode: set a password, or connect from its own host"},
    {RESP_REASON_LOADING, "the server is loading its data: try again later"},
    {RESP_REASON_MASTERDOWN, "the replica has lost its master"},
    {RESP_REASON_BUSY, "a script is running on the server: try again later"},
    {RESP_REASON_MOVED, "the key belongs to that member of the cluster"},
    {RESP_REASON_CROSSSLOT, "the server is a member of a cluster"},
    {RESP_REASON_MAX_CLIENTS, "the server has reached its maxclients limit"},
    {RESP_REASON_DB_INDEX, "the server has fewer databases"},
    {RESP_REASON_UNKNOWN_COMMAND, "the server is too old, or the command was renamed"},
    {RESP_REASON_NO_CLUSTER, "the server is not a member of a cluster"},
    {CLIENT_REASON_CLOSED, HINT_TLS},
    {CLIENT_REASON_ADDRESS, "check the spelling of the name"},
    {CLIENT_REASON_TLS, "check that the port uses TLS"},
    {CLIENT_REASON_TLS_NAME, "the certificate is for another name: use --sni NAME"},
    {CLIENT_REASON_TLS_UNTRUSTED,
     "--cacert FILE sets the trusted CA, --insecure disables verification"},
    {CLIENT_REASON_TLS_IDENTITY,
     "the server may require a client certificate: --cert FILE --key FILE"},
    {CLIENT_REASON_TLS_PLAIN, "the port may not use TLS: try redis:// instead of rediss://"},
};

static const char *hint_of_errno(int sys)
{
    switch (sys) {
    case ECONNREFUSED:
    case ENOENT:
        return "no server listens there: check the address";
    case ETIMEDOUT:
        return "use -t SECONDS to wait longer";
    case EACCES:
        return "no permission to use the socket";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "no route to this address";
    case ECONNRESET:
    case EPIPE:
        return HINT_TLS;
    default:
        return NULL;
    }
}

static const char *find_hint(const struct rd_err *err)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (hints[i].reason == err->reason.id)
            return hints[i].hint;
    return hint_of_errno(err->sys);
}

const char *peer_hint_text(const struct rd_err *err)
{
    return err->code == RD_ERR_PROTOCOL ? find_hint(err) : NULL;
}

void peer_hint(struct cli *cli, const struct rd_err *err)
{
    const char *hint = peer_hint_text(err);
    if (hint != NULL)
        cli_hint(cli, "%s", hint);
}
