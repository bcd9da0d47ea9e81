/* peer_hint.c - hints for errors of connections. */
#include "tools/peer_impl.h"

#include <errno.h>

/* What the text of an error begins with, or holds, and what helps. */
static const struct {
    const char *text;
    const char *hint;
} texts[] = {
    {"NOAUTH", "set a password: REDISCLI_AUTH, --askpass, --pass-file FILE, or in the URL"},
    {"WRONGPASS", "user name or password is wrong, or the user is disabled"},
    {"ERR AUTH <password> called without", "the server does not require a password"},
    {"ERR Client sent AUTH, but no password", "the server does not require a password"},
    {"NOPERM", "the user's ACL does not allow this command or these keys"},
    {"DENIED", "the server is in protected mode: set a password, or connect from its own host"},
    {"LOADING", "the server is loading its data: try again later"},
    {"MASTERDOWN", "the replica has lost its master"},
    {"BUSY", "a script is running on the server: try again later"},
    {"MOVED", "the key belongs to that member of the cluster"},
    {"CROSSSLOT", "the server is a member of a cluster"},
    {"ERR max number of clients", "the server has reached its maxclients limit"},
    {"ERR DB index", "the server has fewer databases"},
    {"ERR unknown command", "the server is too old, or the command was renamed"},
    {"ERR This instance has cluster support disabled", "the server is not a member of a cluster"},
    {"the server closed", "the server may require TLS (rediss:// or --tls); see the server's log"},
    {"cannot find the address", "check the spelling of the name"},
};

static const struct {
    const char *text;
    const char *hint;
} tls_texts[] = {
    {"hostname mismatch", "the certificate is for another name: use --sni NAME"},
    {"IP address mismatch", "the certificate is for another name: use --sni NAME"},
    {"certificate not accepted",
     "--cacert FILE sets the trusted CA, --insecure disables verification"},
    {"certificate required", "the server requires a client certificate: --cert FILE --key FILE"},
    {"handshake failure", "the server may require a client certificate: --cert FILE --key FILE"},
    {"wrong version number", "the port may not use TLS: try redis:// instead of rediss://"},
    {"packet length", "the port may not use TLS: try redis:// instead of rediss://"},
    {"reset by peer", "the server may require a client certificate: --cert FILE --key FILE"},
    {"", "check that the port uses TLS"},
};

static const char *hint_of_errno(int sys)
{
    switch (sys) {
    case ECONNREFUSED:
    case ENOENT:
        return "no server listens there: set the address with -h, -p, -s or a URL";
    case ETIMEDOUT:
        return "use -t SECONDS to wait longer";
    case EACCES:
        return "no permission to use the socket";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "no route to this address";
    case ECONNRESET:
    case EPIPE:
        return "the server may require TLS (rediss:// or --tls); see the server's log";
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
