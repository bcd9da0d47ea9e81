/* client_peer_tls.c - a connection through TLS.
 *
 * OpenSSL reads and writes through functions of our own, which do not raise a signal when the peer
 * has closed the connection.
 */
#include "base/mem.h"
#include "client/peer_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

struct client_peer_tls {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
    BIO_METHOD *method;
    int sys; /* errno of the socket, if that failed */
    bool ended;
};

/* ---- the socket as OpenSSL sees it ---- */

static int bio_end(BIO *bio, ssize_t n, int retry)
{
    struct client_peer_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    else if (n < 0)
        tls->sys = errno;
    return n < 0 ? -1 : (int)n;
}

static int bio_read(BIO *bio, char *buf, int cap)
{
    struct client_peer_tls *tls = BIO_get_data(bio);
    ssize_t n = recv(tls->fd, buf, cap > 0 ? (size_t)cap : 0, 0);
    tls->ended = n == 0;
    return bio_end(bio, n, BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
    const struct client_peer_tls *tls = BIO_get_data(bio);
    return bio_end(bio, send(tls->fd, bytes, len > 0 ? (size_t)len : 0, MSG_NOSIGNAL),
                   BIO_FLAGS_WRITE);
}

static long bio_control(BIO *bio, int what, long number, void *ptr)
{
    const struct client_peer_tls *tls = BIO_get_data(bio);
    (void)number;
    (void)ptr;
    return what == BIO_CTRL_FLUSH || (what == BIO_CTRL_EOF && tls->ended);
}

static bool join(struct client_peer_tls *tls)
{
    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    if (tls->method == NULL || BIO_meth_set_read(tls->method, bio_read) != 1 ||
        BIO_meth_set_write(tls->method, bio_write) != 1 ||
        BIO_meth_set_ctrl(tls->method, bio_control) != 1)
        return false;
    BIO *bio = BIO_new(tls->method);
    if (bio == NULL)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return true;
}

/* ---- errors ---- */

static struct rd_err_reason reason(enum client_reason id)
{
    return (struct rd_err_reason){.id = id};
}

static struct rd_err_reason reason_of_library(unsigned long number)
{
    switch (ERR_GET_REASON(number)) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return reason(CLIENT_REASON_TLS_IDENTITY);
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        return reason(CLIENT_REASON_TLS_PLAIN);
    default:
        return reason(CLIENT_REASON_TLS);
    }
}

static struct rd_err_reason reason_of_certificate(long verified)
{
    bool name =
        verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH;
    return reason(name ? CLIENT_REASON_TLS_NAME : CLIENT_REASON_TLS_UNTRUSTED);
}

/* OpenSSL's reason and the current operation. The error queue is empty afterwards. */
static bool refuse(struct rd_err *err, enum rd_err_code code, const char *what)
{
    unsigned long number = ERR_get_error();
    const char *text = ERR_reason_error_string(number);
    ERR_clear_error();
    return rd_err_set_reason(err, code, RD_NO_OFFSET, reason_of_library(number), "TLS: %s%s%s",
                             what, text != NULL ? ": " : "", text != NULL ? text : "");
}

static bool refuse_file(struct rd_err *err, const char *what, const char *path)
{
    refuse(err, RD_ERR_USAGE, what);
    rd_err_origin(err, path);
    return false;
}

/* The meaning of a failed call. */
static enum client_status judge(struct client_peer_tls *tls, int n, short *ret_events,
                                struct rd_err *err)
{
    char text[64];
    int what = SSL_get_error(tls->ssl, n);
    long verified = SSL_get_verify_result(tls->ssl);
    switch (what) {
    case SSL_ERROR_WANT_READ:
        *ret_events = POLLIN;
        return CLIENT_WAIT;
    case SSL_ERROR_WANT_WRITE:
        *ret_events = POLLOUT;
        return CLIENT_WAIT;
    case SSL_ERROR_ZERO_RETURN:
        return CLIENT_END;
    default:
        break;
    }
    if (tls->sys != 0)
        rd_err_set_reason(
            err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
            reason(tls->sys == ECONNRESET ? CLIENT_REASON_TLS_IDENTITY : CLIENT_REASON_TLS),
            "TLS: %s", strerror_r(tls->sys, text, sizeof text));
    else if (verified != X509_V_OK && SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE)
        rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, reason_of_certificate(verified),
                          "TLS: certificate not accepted: %s",
                          X509_verify_cert_error_string(verified));
    else if (ERR_peek_error() == 0)
        rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, reason(CLIENT_REASON_TLS),
                          "TLS: the connection was closed");
    else
        refuse(err, RD_ERR_PROTOCOL, "the peer closed the handshake");
    if (err != NULL && tls->sys != 0 && err->sys == 0)
        err->sys = tls->sys;
    ERR_clear_error();
    return CLIENT_FAIL;
}

/* ---- certificates ---- */

static bool set_authorities(struct client_peer_tls *tls, const struct client_opts *opts,
                            struct rd_err *err)
{
    if (opts->cacert != NULL && SSL_CTX_load_verify_file(tls->ctx, opts->cacert) != 1)
        return refuse_file(err, "cannot read the CA certificates", opts->cacert);
    if (opts->cacertdir != NULL && SSL_CTX_load_verify_dir(tls->ctx, opts->cacertdir) != 1)
        return refuse_file(err, "cannot read the CA certificates", opts->cacertdir);
    if (opts->cacert == NULL && opts->cacertdir == NULL)
        SSL_CTX_set_default_verify_paths(tls->ctx);
    return true;
}

/* The file of the certificate may contain the key too. */
static bool set_identity(struct client_peer_tls *tls, const struct client_opts *opts,
                         struct rd_err *err)
{
    const char *key = opts->key != NULL ? opts->key : opts->cert;
    if (opts->cert == NULL)
        return true;
    if (SSL_CTX_use_certificate_chain_file(tls->ctx, opts->cert) != 1)
        return refuse_file(err, "cannot read the client certificate", opts->cert);
    if (SSL_CTX_use_PrivateKey_file(tls->ctx, key, SSL_FILETYPE_PEM) != 1)
        return refuse_file(err, "cannot use the private key", key);
    return true;
}

/* A private key with a pass phrase is rejected: this code does not prompt. */
static int no_phrase(char *buf, int size, int writing, void *ctx)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)ctx;
    return -1;
}

static bool is_address(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* The name that is requested is also the name that the certificate must have. */
static bool set_name(struct client_peer_tls *tls, const struct client_target *target)
{
    const struct client_opts *opts = target->opts;
    const char *name = opts->sni != NULL ? opts->sni : target->host;
    bool address = is_address(name);
    /* The expansion of SSL_set_tlsext_host_name(), whose cast clang warns about. */
    if (!address && name[0] != '\0' &&
        SSL_ctrl(tls->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 (void *)(uintptr_t)name) != 1)
        return false;
    if (opts->insecure)
        return true;
    return address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), name) == 1
                   : SSL_set1_host(tls->ssl, name) == 1;
}

static bool begin(struct client_peer_tls *tls, const struct client_target *target,
                  struct rd_err *err)
{
    tls->ctx = SSL_CTX_new(TLS_client_method());
    if (tls->ctx == NULL || SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION) != 1)
        return refuse(err, RD_ERR_MEMORY, "cannot initialize");
    SSL_CTX_set_default_passwd_cb(tls->ctx, no_phrase);
    SSL_CTX_set_verify(tls->ctx, target->opts->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(tls->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* Servers close without a notification. A truncated reply is detected by its length. */
    SSL_CTX_set_options(tls->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (!set_authorities(tls, target->opts, err) || !set_identity(tls, target->opts, err))
        return false;
    tls->ssl = SSL_new(tls->ctx);
    if (tls->ssl == NULL || !join(tls) || !set_name(tls, target))
        return refuse(err, RD_ERR_USAGE, "cannot initialize");
    SSL_set_connect_state(tls->ssl);
    return true;
}

bool client_peer_tls_new(struct client_peer_tls **ret, const struct client_target *target, int fd,
                         struct rd_err *err)
{
    struct client_peer_tls *tls = rd_calloc(1, sizeof *tls);
    if (tls == NULL)
        return rd_err_nomem(err, sizeof *tls);
    tls->fd = fd;
    ERR_clear_error();
    if (begin(tls, target, err)) {
        *ret = tls;
        return true;
    }
    client_peer_tls_free(tls);
    return false;
}

void client_peer_tls_free(struct client_peer_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->ctx);
    BIO_meth_free(tls->method);
    rd_free(tls);
}

/* ---- bytes ---- */

enum client_status client_peer_tls_shake(struct client_peer_tls *tls, short *ret_events,
                                         struct rd_err *err)
{
    ERR_clear_error();
    tls->sys = 0;
    int n = SSL_do_handshake(tls->ssl);
    if (n == 1)
        return CLIENT_OK;
    enum client_status status = judge(tls, n, ret_events, err);
    if (status != CLIENT_END)
        return status;
    rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, reason(CLIENT_REASON_TLS),
                      "TLS: the connection was closed");
    return CLIENT_FAIL;
}

enum client_status client_peer_tls_read(struct client_peer_tls *tls, void *buf, size_t cap,
                                        size_t *ret_len, struct rd_err *err)
{
    short events;
    ERR_clear_error();
    tls->sys = 0;
    int n = SSL_read(tls->ssl, buf, cap < INT_MAX ? (int)cap : INT_MAX);
    if (n <= 0)
        return judge(tls, n, &events, err);
    *ret_len = (size_t)n;
    return CLIENT_OK;
}

/* While the other side renegotiates, writing may wait for reading: both events are polled. */
enum client_status client_peer_tls_write(struct client_peer_tls *tls, struct rd_slice bytes,
                                         size_t *ret_len, struct rd_err *err)
{
    short events;
    ERR_clear_error();
    tls->sys = 0;
    int n = SSL_write(tls->ssl, bytes.ptr, bytes.len < INT_MAX ? (int)bytes.len : INT_MAX);
    if (n > 0) {
        *ret_len = (size_t)n;
        return CLIENT_OK;
    }
    enum client_status status = judge(tls, n, &events, err);
    if (status != CLIENT_END)
        return status;
    rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, reason(CLIENT_REASON_TLS),
                      "TLS: the connection was closed");
    return CLIENT_FAIL;
}
