/* host_keys.h - a file of host keys in the order in which libcurl should try them.
 *
 *     char path[ARCHIVE_HOST_KEYS_PATH];
 *     int fd = archive_host_keys_open("/etc/redoubt/known_hosts", path);
 *     if (fd >= 0)
 *         ... libcurl reads path, until close(fd) ...
 *
 * libcurl asks a host for a key of the type that comes first for this host in the file, and
 * ssh-keyscan prints the RSA key first. Its SHA-1 signature, the only one that libssh2 1.10 can
 * check, is refused by OpenSSH since 8.8: no connection is possible then, although the file has
 * other keys of the host. So the copy has the RSA and DSA keys last.
 */
#ifndef ARCHIVE_HOST_KEYS_H
#define ARCHIVE_HOST_KEYS_H

enum { ARCHIVE_HOST_KEYS_PATH = 40, ARCHIVE_HOST_KEYS_MAX = 16 * 1024 * 1024 };

/* -1: the file cannot be read or copied; use it as it is. */
int archive_host_keys_open(const char *known_hosts, char ret_path[ARCHIVE_HOST_KEYS_PATH]);

#endif
