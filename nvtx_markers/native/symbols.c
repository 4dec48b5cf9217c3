/* Addresses of named data symbols of the running program, static ones included: read from the file's own symbol table. */
#include "internal.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    const uint8_t *bytes;
    size_t size;
};

static const void *part(const struct file *file, uint64_t offset, uint64_t size) {
    return offset <= file->size && size <= file->size - offset ? file->bytes + offset : NULL;
}

static void scan(const struct file *file, const char *names, uintptr_t base,
                 void (*found)(uintptr_t address, size_t size)) {
    const ElfW(Ehdr) *head = part(file, 0, sizeof *head);
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_shentsize != sizeof(ElfW(Shdr))) return;
    const ElfW(Shdr) *sections = part(file, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections);
    if (sections == NULL) return;
    for (unsigned i = 0; i < head->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= head->e_shnum) continue;
        const ElfW(Shdr) *text = &sections[sections[i].sh_link];
        const ElfW(Sym) *symbols = part(file, sections[i].sh_offset, sections[i].sh_size);
        const char *strings = part(file, text->sh_offset, text->sh_size);
        if (symbols == NULL || strings == NULL || text->sh_size == 0 || strings[text->sh_size - 1] != '\0') continue;
        for (uint64_t s = 0; s < sections[i].sh_size / sizeof *symbols; s++) {
            const ElfW(Sym) *symbol = &symbols[s];
            if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_name >= text->sh_size) continue;
            if (nm_list_has(names, strings + symbol->st_name)) found(base + symbol->st_value, symbol->st_size);
        }
    }
}

void nm_program_symbols(const char *names, void (*found)(uintptr_t address, size_t size)) {
    struct stat state;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &state) == 0 && state.st_size > 0) {
        const size_t size = (size_t)state.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            const struct file file = {bytes, size};
            scan(&file, names, _r_debug.r_map == NULL ? 0 : _r_debug.r_map->l_addr, found);
            munmap(bytes, size);
        }
    }
    close(fd);
}
