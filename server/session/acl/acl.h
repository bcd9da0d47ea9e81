/* acl.h - users, and what their rules allow.
 *
 *     size_t at;
 *     enum acl_verdict verdict = acl_check(c->user, command, argc, argv, &at);
 *     if (verdict != ACL_OK) {
 *         acl_log_refusal(c, verdict, ACL_CONTEXT_SCRIPT, command, argv[at]);
 *         return acl_permit(verdict);
 *     }
 *
 * Every connection has a user: `default` at first, then the one that AUTH or HELLO names. The user
 * NULL may do everything: it is the user of the server's own clients (a log being loaded, a
 * master).
 *
 * Rules are described in user_impl.h. A rule refers to commands by their names in the command
 * table, so rename-command does not change its meaning. Keys come from the key specs of the table.
 *
 *     acl.c       the table of users, login, verdicts
 *     clients.c   disconnects clients when rules change
 *     file.c      user lines, aclfile, ACL LOAD, ACL SAVE
 *     log.c       ACL LOG
 *     rules.c, selector.c, describe.c, check.c, list.c   one user: user_impl.h
 */
#ifndef SERVER_SESSION_ACL_ACL_H
#define SERVER_SESSION_ACL_ACL_H

#include "engine/admit.h"
#include "server/session/client/client.h"

struct acl;
struct acl_user;

/* In the order of importance: of several selectors, the largest verdict is reported. */
enum acl_verdict {
    ACL_OK,
    ACL_DENIED_COMMAND,
    ACL_DENIED_KEY,
    ACL_DENIED_AUTH,
    ACL_DENIED_CHANNEL
};

enum acl_context { ACL_CONTEXT_TOPLEVEL, ACL_CONTEXT_MULTI, ACL_CONTEXT_SCRIPT };

/* Creates the user `default` only, who may do everything without a password. */
struct acl *acl_new(enum engine_level level);
void acl_free(struct acl *acl);

/* At the start: applies requirepass, then the user lines of the configuration or the aclfile.
 * False: the reason was logged, and the server must not start. */
bool acl_load_at_start(struct sessions *sessions);

/* ---- verdicts ---- */

/* Whether the user may run this command line, whose arity is right. *ret_at: the argument that is
 * refused (0: the command). */
enum acl_verdict acl_check(const struct acl_user *user, const struct engine_command *command,
                           size_t argc, const struct rd_slice *argv, size_t *ret_at);

/* False: every command line is allowed, and acl_check() is not needed. */
bool acl_is_limited(const struct acl_user *user);

/* SORT with BY or GET: one selector allows the command line and reading every key. */
bool acl_reads_all_keys(const struct acl_user *user, const struct engine_command *command,
                        size_t argc, const struct rd_slice *argv);

/* For the hook `permit` of engine/admit.h, which has the errors. */
enum engine_permit acl_permit(enum acl_verdict verdict);

/* The reason in the error of EXEC. */
const char *acl_refusal_in_exec(enum acl_verdict verdict);

/* Adds a refusal to ACL LOG. arg is argv[at] of acl_check(). */
void acl_log_refusal(struct client *c, enum acl_verdict verdict, enum acl_context context,
                     const struct engine_command *command, struct rd_slice arg);

/* ---- clients ---- */

/* A new connection, or RESET. */
void acl_client_begin(struct client *c);

/* The client must log in before other commands. Cheap. */
bool acl_login_needed(const struct client *c);

/* Logs a client in. True: the client is now this user. False: logged; `word` is the command as it
 * was sent. Every wrong password takes the same time. */
bool acl_login(struct client *c, struct rd_slice user, struct rd_slice password,
               struct rd_slice word);

/* "(superuser)" for NULL. Text, without spaces. */
const char *acl_user_name(const struct acl_user *user);

/* The default user needs no password. */
bool acl_is_open(const struct sessions *sessions);

/* requirepass has changed. */
void acl_set_default_password(struct sessions *sessions, struct rd_slice password);

/* ---- the users ---- */

/* NULL: unknown. */
struct acl_user *acl_find(const struct sessions *sessions, struct rd_slice name);
size_t acl_count(const struct sessions *sessions);
struct acl_user *acl_at(const struct sessions *sessions, size_t index); /* by name */

/* ACL SETUSER: all rules or none. False: *why is the error. */
bool acl_set_user(struct sessions *sessions, struct rd_slice name, const struct rd_slice *rules,
                  size_t n, struct rd_buf *why);

/* ACL DELUSER: disconnects the clients of the user. False: unknown. Not for `default`. */
bool acl_delete_user(struct sessions *sessions, struct rd_slice name);

/* "user NAME RULES" */
void acl_put_line(const struct acl_user *user, struct rd_buf *out);

/* The words after `user` in a line of the configuration: false if they cannot be rules of a user.
 * Unknown commands are found at the start. */
bool acl_check_line(const struct settings *s, const struct rd_slice *words, size_t n,
                    struct rd_buf *why);

/* ACL LOAD, ACL SAVE. */
bool acl_load_file(struct sessions *sessions, struct rd_buf *why);
bool acl_save_file(struct sessions *sessions);

/* ---- ACL LOG ---- */

struct acl_log_entry {
    struct acl_log_entry *prev, *next; /* next: older */
    uint64_t count;
    enum acl_verdict verdict;
    enum acl_context context;
    struct rd_slice object, user;
    struct rd_buf client; /* as in CLIENT LIST */
    int64_t at_ms;        /* Unix time of the last one */
};

const struct acl_log_entry *acl_log_first(const struct sessions *sessions, size_t *ret_n);
void acl_log_reset(struct sessions *sessions);

#endif
