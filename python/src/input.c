/* Sources. Reading a file releases the global lock while the system reads. */
#include "binding.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static enum rd_src_status file_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    int fd = *(int *)impl;
    ssize_t n;
    Py_BEGIN_ALLOW_THREADS;
    do {
        n = read(fd, buf, cap);
    } while (n < 0 && errno == EINTR);
    Py_END_ALLOW_THREADS;
    *ret_len = n > 0 ? (size_t)n : 0;
    if (n < 0)
        rd_err_sys(err, errno, "cannot read");
    return n > 0 ? RD_SRC_OK : n == 0 ? RD_SRC_END : RD_SRC_FAIL;
}

static void file_close(void *impl)
{
    close(*(int *)impl);
    PyMem_RawFree(impl);
}

static bool open_path(const char *path, struct rd_src **ret, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = file_read, .close = file_close};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = path);
    int *fd = PyMem_RawMalloc(sizeof *fd);
    if (fd == NULL)
        return rd_err_nomem(err, sizeof *fd);
    Py_BEGIN_ALLOW_THREADS;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    Py_END_ALLOW_THREADS;
    if (*fd < 0) {
        rd_err_sys(err, errno, "cannot open");
        rd_err_origin(err, path);
        PyMem_RawFree(fd);
        return false;
    }
    return rd_src_new(ret, &ops, fd, &opts, err);
}

/* A copy of the data: the owner of a buffer may change it. */
static bool open_data(PyObject *data, struct rd_src **ret, PyObject **ret_held, struct rd_err *err)
{
    PyObject *bytes = PyBytes_FromObject(data);
    if (bytes == NULL)
        return false;
    struct rd_slice all = rd_slice(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    if (rd_src_open_memory(ret, all, NULL, err)) {
        *ret_held = bytes;
        return true;
    }
    Py_DECREF(bytes);
    return false;
}

static bool unpack(struct rd_src **src, struct rd_err *err)
{
    if (rd_src_decompress(src, err))
        return true;
    rd_src_close(*src);
    return false;
}

bool binding_open_file(const char *path, struct rd_src **ret, struct rd_err *err)
{
    return open_path(path, ret, err) && unpack(ret, err);
}

bool binding_open(PyObject *from, bool is_data, struct rd_src **ret, PyObject **ret_held)
{
    struct rd_err err = {0};
    bool ok;
    *ret_held = NULL;
    if (is_data) {
        ok = open_data(from, ret, ret_held, &err) && unpack(ret, &err);
    } else {
        PyObject *path;
        if (!PyUnicode_FSConverter(from, &path))
            return false;
        ok = binding_open_file(PyBytes_AS_STRING(path), ret, &err);
        Py_DECREF(path);
    }
    if (ok)
        return true;
    Py_CLEAR(*ret_held);
    if (!PyErr_Occurred())
        binding_raise(&err);
    return false;
}
