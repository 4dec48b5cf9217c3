/* The tap for C streams: libc's stdio enters the kernel without calling `write` where we could see it, so its printing
 * functions are followed instead, on stdout and stderr only. The program's own call is made first and untouched. */
#undef _FORTIFY_SOURCE
#include "internal.h"
#include "real.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Macros and inline forms of libc's headers. */
#undef putc
#undef putchar
#undef fputc
#undef fwrite_unlocked
#undef fputs_unlocked

NM_REAL(int, vfprintf, (FILE * stream, const char *format, va_list values), (stream, format, values), -1)
NM_REAL(int, __vfprintf_chk, (FILE * stream, int flag, const char *format, va_list values),
        (stream, flag, format, values), -1)
NM_REAL(int, vdprintf, (int fd, const char *format, va_list values), (fd, format, values), -1)
NM_REAL(int, __vdprintf_chk, (int fd, int flag, const char *format, va_list values), (fd, flag, format, values), -1)
NM_REAL(int, fputs, (const char *text, FILE *stream), (text, stream), EOF)
NM_REAL(int, fputs_unlocked, (const char *text, FILE *stream), (text, stream), EOF)
NM_REAL(int, puts, (const char *text), (text), EOF)
NM_REAL(size_t, fwrite, (const void *items, size_t size, size_t count, FILE *stream), (items, size, count, stream), 0)
NM_REAL(size_t, fwrite_unlocked, (const void *items, size_t size, size_t count, FILE *stream),
        (items, size, count, stream), 0)
NM_REAL(int, fputc, (int character, FILE *stream), (character, stream), EOF)
NM_REAL(int, putc, (int character, FILE *stream), (character, stream), EOF)
NM_REAL(int, _IO_putc, (int character, FILE *stream), (character, stream), EOF)
NM_REAL(int, putchar, (int character), (character), EOF)

/* 1 or 2, or 0 where nothing is to be followed. */
static inline int followed(const FILE *stream) {
    if (!nm_on(NM_PART_TAP) || nm_emitting != 0 || nm_tap_paused != 0) return 0;
    return stream == stderr ? 2 : stream == stdout ? 1 : 0;
}

static inline int followed_fd(int fd) {
    return nm_on(NM_PART_TAP) && nm_emitting == 0 && nm_tap_paused == 0 && (fd == 1 || fd == 2) ? fd : 0;
}

/* What was printed, as far as it matters: the text where a timeline line may be part of it, else only how it ended. */
static void feed_printed(int fd, const char *format, va_list values, int printed, int errno_before, uint64_t began) {
    char text[1200];
    const int saved = errno;
    const size_t length = strlen(format);
    if (printed <= 0 || length == 0) return;
    const bool at_start = !nm_tap_midline(fd);
    const bool may_begin = at_start && (format[0] == 'T' || format[0] == '%');
    const bool plain = at_start && !may_begin && strchr(format, '\n') == format + length - 1;
    if (plain) return; /* one whole line of something else, the usual log line */
    errno = errno_before; /* %m */
    const int made = vsnprintf(text, sizeof text, format, values);
    const bool whole = (size_t)made < sizeof text;
    if (made > 0) nm_tap_feed(fd, text, whole ? (size_t)made : sizeof text - 1, began);
    if (made > 0 && !whole && format[length - 1] == '\n') nm_tap_feed(fd, "\n", 1, began);
    errno = saved;
}

#define FOLLOW(fd, format, last_named, call)                       \
    va_list values, again;                                         \
    const int followed_now = (fd), errno_before = errno;           \
    const uint64_t began = followed_now != 0 ? nm_mono_ns() : 0;   \
    va_start(values, last_named);                                  \
    va_copy(again, values);                                        \
    const int printed = (call);                                    \
    if (followed_now != 0) feed_printed(followed_now, format, again, printed, errno_before, began); \
    va_end(again);                                                 \
    va_end(values);                                                \
    return printed

#define FOLLOW_LIST(fd, format, call)                              \
    va_list again;                                                 \
    const int followed_now = (fd), errno_before = errno;           \
    const uint64_t began = followed_now != 0 ? nm_mono_ns() : 0;   \
    va_copy(again, values);                                        \
    const int printed = (call);                                    \
    if (followed_now != 0) feed_printed(followed_now, format, again, printed, errno_before, began); \
    va_end(again);                                                 \
    return printed

NM_EXPORT int printf(const char *format, ...) {
    FOLLOW(followed(stdout), format, format, vfprintf_call(stdout, format, values));
}
NM_EXPORT int fprintf(FILE *stream, const char *format, ...) {
    FOLLOW(followed(stream), format, format, vfprintf_call(stream, format, values));
}
NM_EXPORT int dprintf(int fd, const char *format, ...) {
    FOLLOW(followed_fd(fd), format, format, vdprintf_call(fd, format, values));
}
NM_EXPORT int vprintf(const char *format, va_list values) {
    FOLLOW_LIST(followed(stdout), format, vfprintf_call(stdout, format, values));
}
NM_EXPORT int vfprintf(FILE *stream, const char *format, va_list values) {
    FOLLOW_LIST(followed(stream), format, vfprintf_call(stream, format, values));
}
NM_EXPORT int vdprintf(int fd, const char *format, va_list values) {
    FOLLOW_LIST(followed_fd(fd), format, vdprintf_call(fd, format, values));
}

/* What programs built with _FORTIFY_SOURCE call. */
NM_EXPORT int __printf_chk(int flag, const char *format, ...) {
    FOLLOW(followed(stdout), format, format, __vfprintf_chk_call(stdout, flag, format, values));
}
NM_EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...) {
    FOLLOW(followed(stream), format, format, __vfprintf_chk_call(stream, flag, format, values));
}
NM_EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...) {
    FOLLOW(followed_fd(fd), format, format, __vdprintf_chk_call(fd, flag, format, values));
}
NM_EXPORT int __vprintf_chk(int flag, const char *format, va_list values) {
    FOLLOW_LIST(followed(stdout), format, __vfprintf_chk_call(stdout, flag, format, values));
}
NM_EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list values) {
    FOLLOW_LIST(followed(stream), format, __vfprintf_chk_call(stream, flag, format, values));
}
NM_EXPORT int __vdprintf_chk(int fd, int flag, const char *format, va_list values) {
    FOLLOW_LIST(followed_fd(fd), format, __vdprintf_chk_call(fd, flag, format, values));
}

static inline void feed(int fd, const char *bytes, size_t length, uint64_t began) {
    if (length > 0) nm_tap_feed(fd, bytes, length, began);
}

NM_EXPORT int fputs(const char *text, FILE *stream) {
    const int fd = followed(stream);
    if (fd == 0) return fputs_call(text, stream);
    const uint64_t began = nm_mono_ns();
    const int result = fputs_call(text, stream);
    if (result >= 0) feed(fd, text, strlen(text), began);
    return result;
}

NM_EXPORT int fputs_unlocked(const char *text, FILE *stream) {
    const int fd = followed(stream);
    if (fd == 0) return fputs_unlocked_call(text, stream);
    const uint64_t began = nm_mono_ns();
    const int result = fputs_unlocked_call(text, stream);
    if (result >= 0) feed(fd, text, strlen(text), began);
    return result;
}

NM_EXPORT int puts(const char *text) {
    const int fd = followed(stdout);
    if (fd == 0) return puts_call(text);
    const uint64_t began = nm_mono_ns();
    const int result = puts_call(text);
    if (result >= 0) {
        feed(fd, text, strlen(text), began);
        feed(fd, "\n", 1, began);
    }
    return result;
}

NM_EXPORT size_t fwrite(const void *items, size_t size, size_t count, FILE *stream) {
    const int fd = followed(stream);
    if (fd == 0) return fwrite_call(items, size, count, stream);
    const uint64_t began = nm_mono_ns();
    const size_t done = fwrite_call(items, size, count, stream);
    feed(fd, items, done * size, began);
    return done;
}

NM_EXPORT size_t fwrite_unlocked(const void *items, size_t size, size_t count, FILE *stream) {
    const int fd = followed(stream);
    if (fd == 0) return fwrite_unlocked_call(items, size, count, stream);
    const uint64_t began = nm_mono_ns();
    const size_t done = fwrite_unlocked_call(items, size, count, stream);
    feed(fd, items, done * size, began);
    return done;
}

static inline int follow_character(int fd, int result, uint64_t began) {
    const char byte = (char)result;
    if (fd != 0 && result != EOF) nm_tap_feed(fd, &byte, 1, began);
    return result;
}

NM_EXPORT int fputc(int character, FILE *stream) {
    const int fd = followed(stream);
    const uint64_t began = fd != 0 ? nm_mono_ns() : 0;
    return follow_character(fd, fputc_call(character, stream), began);
}
NM_EXPORT int putc(int character, FILE *stream) {
    const int fd = followed(stream);
    const uint64_t began = fd != 0 ? nm_mono_ns() : 0;
    return follow_character(fd, putc_call(character, stream), began);
}
NM_EXPORT int _IO_putc(int character, FILE *stream) {
    const int fd = followed(stream);
    const uint64_t began = fd != 0 ? nm_mono_ns() : 0;
    return follow_character(fd, _IO_putc_call(character, stream), began);
}
NM_EXPORT int putchar(int character) {
    const int fd = followed(stdout);
    const uint64_t began = fd != 0 ? nm_mono_ns() : 0;
    return follow_character(fd, putchar_call(character), began);
}
