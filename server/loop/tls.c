#include "server/loop/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/loop/loop.h"

struct tls {
    SSL_CTX *ctx;
};

static bool fail(struct rd_err *err, const char *what)
{
    char reason[160];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    ERR_clear_error();
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s: %s", what, reason);
}

static bool fail_file(struct rd_err *err, const char *what, const char *path)
{
    char text[160];
    snprintf(text, sizeof text, "%s: %s", what, path);
    return fail(err, text);
}

static int password(char *dst, int size, int writing, void *ctx)
{
    (void)writing;
    const char *text = ctx;
    size_t len = strlen(text);
    if (size <= 0 || len >= (size_t)size)
        return -1;
    memcpy(dst, text, len + 1);
    return (int)len;
}

/* "TLSv1.2 TLSv1.3" */
static bool set_protocols(SSL_CTX *ctx, const char *names, struct rd_err *err)
{
    static const struct {
        const char *name;
        uint64_t no;
    } versions[] = {{"TLSv1", SSL_OP_NO_TLSv1},
                    {"TLSv1.1", SSL_OP_NO_TLSv1_1},
                    {"TLSv1.2", SSL_OP_NO_TLSv1_2},
                    {"TLSv1.3", SSL_OP_NO_TLSv1_3}};
    uint64_t off = SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1;
    char copy[128], *rest = copy;
    if (names[0] != 0)
        off |= SSL_OP_NO_TLSv1_2 | SSL_OP_NO_TLSv1_3;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        uint64_t no = 0;
        for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
            if (strcasecmp(word, versions[i].name) == 0)
                no = versions[i].no;
        if (no == 0)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "Invalid tls-protocols specified. Use a combination of TLSv1, "
                              "TLSv1.1, TLSv1.2 and TLSv1.3.");
        off &= ~no;
    }
    SSL_CTX_set_options(ctx, off);
    return true;
}

/* The certificate and key of this side of a connection. */
struct identity {
    const char *cert, *key;
    char *pass; /* of the key; "": none */
};

static struct identity of_server(const struct settings *s)
{
    return (struct identity){s->tls_cert_file, s->tls_key_file, s->tls_key_file_pass};
}

static struct identity of_client(const struct settings *s)
{
    if (s->tls_client_cert_file[0] == 0)
        return of_server(s);
    return (struct identity){s->tls_client_cert_file, s->tls_client_key_file,
                             s->tls_client_key_file_pass};
}

static bool load_certificates(SSL_CTX *ctx, const struct settings *s, const struct identity *id,
                              struct rd_err *err)
{
    if (id->pass[0] != 0) {
        SSL_CTX_set_default_passwd_cb(ctx, password);
        SSL_CTX_set_default_passwd_cb_userdata(ctx, id->pass);
    }
    if (SSL_CTX_use_certificate_chain_file(ctx, id->cert) <= 0)
        return fail_file(err, "Failed to load certificate", id->cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, id->key, SSL_FILETYPE_PEM) <= 0)
        return fail_file(err, "Failed to load private key", id->key);
    const char *file = s->tls_ca_cert_file[0] != 0 ? s->tls_ca_cert_file : NULL;
    const char *folder = s->tls_ca_cert_dir[0] != 0 ? s->tls_ca_cert_dir : NULL;
    if ((file != NULL || folder != NULL) && SSL_CTX_load_verify_locations(ctx, file, folder) <= 0)
        return fail_file(err, "Failed to configure CA certificate(s) file/directory",
                         file != NULL ? file : folder);
    return true;
}

static bool set_ciphers(SSL_CTX *ctx, const struct settings *s, struct rd_err *err)
{
    if (s->tls_ciphers[0] != 0 && !SSL_CTX_set_cipher_list(ctx, s->tls_ciphers))
        return fail(err, "Failed to configure ciphers");
    if (s->tls_ciphersuites[0] != 0 && !SSL_CTX_set_ciphersuites(ctx, s->tls_ciphersuites))
        return fail(err, "Failed to configure ciphersuites");
    if (s->tls_prefer_server_ciphers)
        SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    return true;
}

static bool set_dh_params(SSL_CTX *ctx, const struct settings *s, struct rd_err *err)
{
    if (s->tls_dh_params_file[0] == 0)
        return true;
    BIO *file = BIO_new_file(s->tls_dh_params_file, "r");
    EVP_PKEY *params = file != NULL ? PEM_read_bio_Parameters(file, NULL) : NULL;
    BIO_free(file);
    if (params == NULL || SSL_CTX_set0_tmp_dh_pkey(ctx, params) <= 0) {
        EVP_PKEY_free(params);
        return fail_file(err, "Failed to load DH params file", s->tls_dh_params_file);
    }
    return true;
}

static void set_verification(SSL_CTX *ctx, const struct settings *s)
{
    int mode = SSL_VERIFY_NONE;
    if (s->tls_auth_clients == SETTINGS_TLS_AUTH_YES)
        mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    else if (s->tls_auth_clients == SETTINGS_TLS_AUTH_OPTIONAL)
        mode = SSL_VERIFY_PEER;
    SSL_CTX_set_verify(ctx, mode, NULL);
}

static void set_sessions(SSL_CTX *ctx, const struct settings *s)
{
    if (!s->tls_session_caching) {
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        return;
    }
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(ctx, (long)s->tls_session_cache_size);
    SSL_CTX_set_timeout(ctx, (long)s->tls_session_cache_timeout);
    SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"redis", 5);
}

static bool check(const struct settings *s, bool verifies, struct rd_err *err)
{
    if (s->tls_cert_file[0] == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "No tls-cert-file configured!");
    if (s->tls_key_file[0] == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "No tls-key-file configured!");
    if (verifies && s->tls_ca_cert_file[0] == 0 && s->tls_ca_cert_dir[0] == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when "
                          "tls-cluster, tls-replication or tls-auth-clients are enabled!");
    return true;
}

static bool configure(SSL_CTX *ctx, const struct settings *s, const struct identity *id,
                      struct rd_err *err)
{
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    return set_protocols(ctx, s->tls_protocols, err) && load_certificates(ctx, s, id, err) &&
           set_ciphers(ctx, s, err);
}

static bool new_context(struct tls **ret, const SSL_METHOD *method, struct rd_err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    struct tls *tls = rd_alloc(sizeof *tls);
    if (ctx == NULL || tls == NULL) {
        SSL_CTX_free(ctx);
        rd_free(tls);
        return rd_err_nomem(err, sizeof *tls);
    }
    tls->ctx = ctx;
    *ret = tls;
    return true;
}

bool tls_new(struct tls **ret, const struct settings *s, struct rd_err *err)
{
    const struct identity id = of_server(s);
    struct tls *tls;
    if (!check(s, s->tls_auth_clients != SETTINGS_TLS_AUTH_NO, err) ||
        !new_context(&tls, TLS_server_method(), err))
        return false;
    set_sessions(tls->ctx, s);
    set_verification(tls->ctx, s);
    if (!configure(tls->ctx, s, &id, err) || !set_dh_params(tls->ctx, s, err)) {
        tls_free(tls);
        return false;
    }
    *ret = tls;
    return true;
}

bool tls_new_client(struct tls **ret, const struct settings *s, struct rd_err *err)
{
    const struct identity id = of_client(s);
    struct tls *tls;
    if (!check(s, true, err) || !new_context(&tls, TLS_client_method(), err))
        return false;
    SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER, NULL);
    if (!configure(tls->ctx, s, &id, err)) {
        tls_free(tls);
        return false;
    }
    *ret = tls;
    return true;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->ctx); /* sessions keep it as long as they need it */
    rd_free(tls);
}

static SSL *begin(struct tls *tls, struct conn *conn)
{
    SSL *ssl = SSL_new(tls->ctx);
    if (ssl == NULL || !SSL_set_fd(ssl, conn->fd)) {
        SSL_free(ssl);
        return NULL;
    }
    conn->ssl = ssl;
    return ssl;
}

bool tls_begin(struct tls *tls, struct conn *conn)
{
    SSL *ssl = begin(tls, conn);
    if (ssl != NULL)
        SSL_set_accept_state(ssl);
    return ssl != NULL;
}

bool tls_begin_client(struct tls *tls, struct conn *conn)
{
    SSL *ssl = begin(tls, conn);
    if (ssl != NULL)
        SSL_set_connect_state(ssl);
    return ssl != NULL;
}

/* The meaning of a failed OpenSSL call. */
static ssize_t outcome(struct conn *conn, int result)
{
    int error = SSL_get_error(conn->ssl, result);
    conn->tls_wants_write = error == SSL_ERROR_WANT_WRITE;
    conn->tls_wants_read = error == SSL_ERROR_WANT_READ;
    if (conn->tls_wants_write || conn->tls_wants_read)
        return CONN_AGAIN;
    if (error == SSL_ERROR_ZERO_RETURN)
        return CONN_END;
    unsigned long code = ERR_get_error();
    if (code == 0)
        snprintf(conn->error, sizeof conn->error, "the peer closed the connection unexpectedly");
    else
        ERR_error_string_n(code, conn->error, sizeof conn->error);
    ERR_clear_error();
    return code == 0 && error == SSL_ERROR_SYSCALL ? CONN_END : CONN_FAIL;
}

ssize_t tls_handshake(struct conn *conn)
{
    ERR_clear_error();
    int result = SSL_do_handshake(conn->ssl);
    if (result == 1) {
        conn->tls_wants_write = conn->tls_wants_read = false;
        return 1;
    }
    return outcome(conn, result) == CONN_AGAIN ? CONN_AGAIN : CONN_FAIL;
}

ssize_t tls_read(struct conn *conn, void *dst, size_t size)
{
    ERR_clear_error();
    int n = SSL_read(conn->ssl, dst, size > INT32_MAX ? INT32_MAX : (int)size);
    if (n <= 0)
        return outcome(conn, n);
    conn->tls_wants_write = false;
    return n;
}

ssize_t tls_write(struct conn *conn, const void *src, size_t len)
{
    if (len == 0)
        return 0;
    ERR_clear_error();
    int n = SSL_write(conn->ssl, src, len > INT32_MAX ? INT32_MAX : (int)len);
    if (n <= 0) {
        ssize_t what = outcome(conn, n);
        return what == CONN_END ? CONN_FAIL : what;
    }
    conn->tls_wants_write = false;
    return n;
}

void tls_end(struct conn *conn)
{
    SSL_shutdown(conn->ssl);
    SSL_free(conn->ssl);
    conn->ssl = NULL;
    ERR_clear_error();
}

bool tls_pending(const struct conn *conn)
{
    return conn->ssl != NULL && SSL_pending(conn->ssl) > 0;
}
