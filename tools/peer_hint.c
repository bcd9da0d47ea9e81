/* peer_hint.c - what to do about an error. */
#include "tools/peer_impl.h"

#include <errno.h>

/* What the text of an error begins with, or holds, and what helps. */
static const struct {
    const char *text;
    const char *hint;
} texts[] = {
    {"NOAUTH", "give a password: REDISCLI_AUTH, --askpass, --pass-file FILE, or in the URL"},
    {"WRONGPASS", "name and password do not belong together, or the user is switched off"},
    {"ERR AUTH <password> called without", "the server wants no password"},
    {"ERR Client sent AUTH, but no password", "the server wants no password"},
    {"NOPERM", "the user's ACL lacks this command or these keys"},
    {"DENIED", "the server is in protected mode: it wants a password, or its own machine"},
    {"LOADING", "the server reads its data: try again later"},
    {"MASTERDOWN", "the replica has lost its master"},
    {"BUSY", "a script is running on the server: try again later"},
    {"MOVED", "the key lives on that member of the cluster"},
    {"CROSSSLOT", "the server is a member of a cluster"},
    {"ERR max number of clients", "the server's maxclients is reached"},
    {"ERR DB index", "the server has fewer databases"},
    {"ERR unknown command", "the server is too old, or the command was renamed"},
    {"ERR This instance has cluster support disabled", "the server is no member of a cluster"},
    {"the server closed", "TLS? rediss:// or --tls; else the server's log may say why"},
    {"cannot find the address", "is the name spelled right?"},
};

static const struct {
    const char *text;
    const char *hint;
} tls_texts[] = {
    {"hostname mismatch", "the certificate is for another name: --sni NAME says which"},
    {"IP address mismatch", "the certificate is for another name: --sni NAME says which"},
    {"certificate not accepted",
     "--cacert FILE names whom to believe, --insecure believes anybody"},
    {"certificate required", "the server wants to know us: --cert FILE --key FILE"},
    {"handshake failure", "the server may want to know us: --cert FILE --key FILE"},
    {"wrong version number", "the port may be one without TLS: redis:// instead of rediss://"},
    {"packet length", "the port may be one without TLS: redis:// instead of rediss://"},
    {"reset by peer", "the server may want to know us: --cert FILE --key FILE"},
    {"", "is the port one with TLS?"},
};

static const char *hint_of_errno(int sys)
{
    switch (sys) {
    case ECONNREFUSED:
    case ENOENT:
        return "no server listens there: -h, -p, -s or a URL say where";
    case ETIMEDOUT:
        return "-t SECONDS waits longer";
    case EACCES:
        return "the socket belongs to somebody else";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "there is no way to this address";
    case ECONNRESET:
    case EPIPE:
        return "TLS? rediss:// or --tls; else the server's log may say why";
    default:
        return NULL;
    }
}

static const char *find_hint(const struct rd_err *err)
{
    if (strncmp(err->text, "TLS: ", 5) == 0)
        for (size_t i = 0;; i++)
            if (strstr(err->text, tls_texts[i].text) != NULL)
                return tls_texts[i].hint;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strncmp(err->text, texts[i].text, strlen(texts[i].text)) == 0)
            return texts[i].hint;
    return hint_of_errno(err->sys);
}

void peer_hint(struct cli *cli, const struct rd_err *err)
{
    const char *hint = err->code == RD_ERR_PROTOCOL ? find_hint(err) : NULL;
    if (hint != NULL)
        cli_hint(cli, "%s", hint);
}
