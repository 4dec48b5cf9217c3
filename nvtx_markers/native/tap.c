/* The timeline tap: lines that begin with `TIMELINE,` on stdout or stderr become marks, whatever pieces they are written
 * in. Bytes reach us after the program has written them; nothing is held back or changed. */
#include "internal.h"
#include "real.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

NM_TLS_DEFINE int nm_tap_paused;

static const char prefix[] = "TIMELINE,";
enum { PREFIX = sizeof prefix - 1, LINE = 1000, BUFFERS = 64 };

/* Lines that come in pieces (a Rust program writes nine) are put together here, one buffer a thread and descriptor. */
static struct buffer {
    _Atomic uint64_t ticket; /* the taker's; 0 is free */
    _Atomic uint64_t touched_ns;
    uint64_t began_ns;
    size_t length;
    char bytes[LINE];
} buffers[BUFFERS];
static _Atomic uint64_t tickets;

NM_TLS struct {
    struct buffer *buffer;
    uint64_t ticket;
    bool midline; /* inside a line that is not ours */
} streams[2];

/* A free buffer, or one left behind by a thread that ended in the middle of a line. Its owner, should it live after all,
 * sees another ticket and lets go. */
static bool take_buffer(int stream, uint64_t now) {
    static const uint64_t stale_ns = 10000000000u;
    const uint64_t ticket = atomic_fetch_add(&tickets, 1) + 1;
    for (int i = 0; i < 2 * BUFFERS; i++) {
        struct buffer *buffer = &buffers[i % BUFFERS];
        uint64_t holder = atomic_load(&buffer->ticket);
        const uint64_t touched = atomic_load(&buffer->touched_ns);
        const bool stale = i >= BUFFERS && touched < now && now - touched > stale_ns;
        if ((holder != 0 && !stale) || !atomic_compare_exchange_strong(&buffer->ticket, &holder, ticket)) continue;
        atomic_store(&buffer->touched_ns, now);
        buffer->length = 0;
        buffer->began_ns = now;
        streams[stream].buffer = buffer;
        streams[stream].ticket = ticket;
        return true;
    }
    return false;
}

static void drop_buffer(int stream) {
    uint64_t ticket = streams[stream].ticket;
    atomic_compare_exchange_strong(&streams[stream].buffer->ticket, &ticket, 0);
    streams[stream].buffer = NULL;
}

static size_t utf8_length(const uint8_t *at, size_t left) {
    const size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xF0 && at[0] < 0xF5 ? 4 : at[0] >= 0xE0 ? 3 : at[0] >= 0xC2 ? 2 : 0;
    if (length == 0 || at[0] >= 0xF5 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    return length;
}

/* Text that every reader of the trace can store: no control characters, valid UTF-8. */
static void copy_clean(char *to, const char *from, size_t length) {
    const uint8_t *bytes = (const uint8_t *)from;
    for (size_t i = 0; i < length;) {
        if (bytes[i] >= 0x20 && bytes[i] < 0x7F) { /* nearly always */
            to[i] = from[i];
            i++;
            continue;
        }
        const size_t step = utf8_length(bytes + i, length - i);
        if (step <= 1) {
            to[i++] = '?';
        } else {
            memcpy(to + i, from + i, step);
            i += step;
        }
    }
}

/* Appends a name and a number; printf would take longer than the mark itself. */
static char *append_number(char *to, const char *name, uint64_t number) {
    char digits[20];
    size_t count = 0;
    while (*name != '\0') *to++ = *name++;
    do digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0) *to++ = digits[--count];
    return to;
}

static void mark_line(const char *line, size_t length, uint64_t began_ns) {
    char text[LINE + 112];
    if (length > 0 && line[length - 1] == '\r') length--;
    if (length > LINE) return;
    copy_clean(text, line, length);
    const uint64_t wall = nm_wall_ns(), mono = nm_mono_ns();
    char *end = append_number(text + length, "|wall_ns=", wall);
    end = append_number(end, "|mono_ns=", mono);
    end = append_number(end, "|late_ns=", mono - began_ns);
    *end = '\0';
    nm_mark(NM_TIMELINE, text);
}

static bool begins_like_ours(const char *bytes, size_t length) {
    return memcmp(bytes, prefix, length < PREFIX ? length : PREFIX) == 0;
}

void nm_tap_line(const char *line, size_t length, uint64_t began_ns) {
    if (length >= PREFIX && begins_like_ours(line, length)) mark_line(line, length, began_ns);
}

bool nm_tap_midline(int fd) { return streams[fd - 1].midline || streams[fd - 1].buffer != NULL; }

static void append(int stream, const char *bytes, size_t length, uint64_t began_ns) {
    if (streams[stream].buffer == NULL) {
        if (streams[stream].midline || length == 0) return;
        if (length > LINE || !begins_like_ours(bytes, length) || !take_buffer(stream, began_ns)) {
            streams[stream].midline = true;
            return;
        }
    }
    struct buffer *buffer = streams[stream].buffer;
    const bool mine = atomic_load(&buffer->ticket) == streams[stream].ticket;
    if (mine && length <= LINE - buffer->length) {
        memcpy(buffer->bytes + buffer->length, bytes, length);
        buffer->length += length;
        atomic_store(&buffer->touched_ns, began_ns);
        if (begins_like_ours(buffer->bytes, buffer->length)) return;
    }
    drop_buffer(stream);
    streams[stream].midline = true;
}

static void finish(int stream, const char *bytes, size_t length, uint64_t began_ns) {
    if (streams[stream].buffer == NULL) { /* the usual case: the whole line at once */
        if (!streams[stream].midline) nm_tap_line(bytes, length, began_ns);
    } else {
        append(stream, bytes, length, began_ns);
        const struct buffer *buffer = streams[stream].buffer;
        if (buffer != NULL) {
            nm_tap_line(buffer->bytes, buffer->length, buffer->began_ns);
            drop_buffer(stream);
        }
    }
    streams[stream].midline = false;
}

void nm_tap_feed(int fd, const char *bytes, size_t length, uint64_t began_ns) {
    const int saved = errno;
    while (length > 0) {
        const char *newline = memchr(bytes, '\n', length);
        if (newline == NULL) {
            append(fd - 1, bytes, length, began_ns);
            break;
        }
        finish(fd - 1, bytes, (size_t)(newline - bytes), began_ns);
        length -= (size_t)(newline - bytes) + 1;
        bytes = newline + 1;
    }
    errno = saved;
}

/* ---- the two calls a Rust, Go-through-libc, Python or C++ program ends up in ---- */

NM_REAL(ssize_t, write, (int fd, const void *bytes, size_t length), (fd, bytes, length), (errno = ENOSYS, -1))
NM_REAL(ssize_t, writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count), (errno = ENOSYS, -1))

static inline bool tapped(int fd) {
    return nm_on(NM_PART_TAP) && (fd == 1 || fd == 2) && nm_emitting == 0 && nm_tap_paused == 0;
}

/* Kept apart, so that the wrappers are a few tests and a jump while there is nothing to follow. */
static __attribute__((noinline)) ssize_t tapped_write(int fd, const void *bytes, size_t length) {
    const uint64_t began = nm_mono_ns();
    const ssize_t written = write_call(fd, bytes, length);
    if (written > 0) nm_tap_feed(fd, bytes, (size_t)written, began);
    return written;
}

NM_EXPORT ssize_t write(int fd, const void *bytes, size_t length) {
    return tapped(fd) ? tapped_write(fd, bytes, length) : write_call(fd, bytes, length);
}

static __attribute__((noinline)) ssize_t tapped_writev(int fd, const struct iovec *pieces, int count) {
    const uint64_t began = nm_mono_ns();
    const ssize_t written = writev_call(fd, pieces, count);
    size_t left = written > 0 ? (size_t)written : 0;
    for (int i = 0; i < count && left > 0; i++) {
        const size_t length = pieces[i].iov_len < left ? pieces[i].iov_len : left;
        nm_tap_feed(fd, pieces[i].iov_base, length, began);
        left -= length;
    }
    return written;
}

NM_EXPORT ssize_t writev(int fd, const struct iovec *pieces, int count) {
    return tapped(fd) ? tapped_writev(fd, pieces, count) : writev_call(fd, pieces, count);
}
