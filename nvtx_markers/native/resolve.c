/* The function that comes after ours in the loader's order, found without dlsym: a tool may wrap dlsym and hand out a
 * function that calls us back. Also: which kind of object an address belongs to. */
#include "internal.h"
#include "real.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

extern ElfW(Dyn) _DYNAMIC[] NM_HIDDEN;

struct image {
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const ElfW(Half) * versions;
};

/* glibc rewrites these entries to addresses when it loads an object, except where the section is read-only. */
static const void *entry_address(ElfW(Addr) base, ElfW(Addr) value) {
    return (const void *)(value < base ? base + value : value);
}

static bool read_image(ElfW(Addr) base, const ElfW(Dyn) * dynamic, struct image *image) {
    memset(image, 0, sizeof *image);
    image->base = base;
    if (dynamic == NULL) return false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        switch (dynamic->d_tag) {
        case DT_SYMTAB: image->symbols = entry_address(base, dynamic->d_un.d_ptr); break;
        case DT_STRTAB: image->strings = entry_address(base, dynamic->d_un.d_ptr); break;
        case DT_GNU_HASH: image->gnu_hash = entry_address(base, dynamic->d_un.d_ptr); break;
        case DT_VERSYM: image->versions = entry_address(base, dynamic->d_un.d_ptr); break;
        default: break;
        }
    }
    return image->symbols != NULL && image->strings != NULL && image->gnu_hash != NULL;
}

static uint32_t gnu_hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name != '\0'; name++) hash = hash * 33 + (uint8_t)*name;
    return hash;
}

static void *symbol_address(const struct image *image, const ElfW(Sym) * symbol) {
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    void *address = (void *)(image->base + symbol->st_value);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0) return NULL;
    if (type == STT_GNU_IFUNC) return ((void *(*)(void))address)();
    return type == STT_FUNC || type == STT_NOTYPE ? address : NULL;
}

/* The default version of a symbol, or the only one. */
static void *find_symbol(const struct image *image, const char *name) {
    const uint32_t *table = image->gnu_hash;
    const uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2], bloom_shift = table[3];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(table + 4);
    const uint32_t *buckets = (const uint32_t *)(bloom + bloom_words);
    const uint32_t *chain = buckets + bucket_count;
    const uint32_t hash = gnu_hash_of(name);
    const unsigned bits = sizeof(ElfW(Addr)) * 8;
    if (bucket_count == 0 || bloom_words == 0) return NULL;
    const ElfW(Addr) word = bloom[(hash / bits) & (bloom_words - 1)];
    if (((word >> (hash % bits)) & (word >> ((hash >> bloom_shift) % bits)) & 1) == 0) return NULL;
    uint32_t index = buckets[hash % bucket_count];
    void *hidden_version = NULL;
    if (index < first) return NULL;
    for (;; index++) {
        const uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && strcmp(image->strings + image->symbols[index].st_name, name) == 0) {
            void *address = symbol_address(image, &image->symbols[index]);
            const bool hidden = image->versions != NULL && (image->versions[index] & 0x8000) != 0;
            if (address != NULL && !hidden) return address;
            if (address != NULL) hidden_version = address;
        }
        if ((entry & 1) != 0) return hidden_version;
    }
}

void *nm_next(const char *name) {
    bool behind_us = false;
    struct image image;
    for (const struct link_map *map = _r_debug.r_map; map != NULL; map = map->l_next) {
        if (map->l_ld == _DYNAMIC) {
            behind_us = true;
        } else if (behind_us && read_image(map->l_addr, map->l_ld, &image)) {
            void *address = find_symbol(&image, name);
            if (address != NULL) return address;
        }
    }
    return NULL;
}

void *nm_libc(const char *name) {
    struct image image;
    for (const struct link_map *map = _r_debug.r_map; map != NULL; map = map->l_next) {
        const char *file = map->l_name == NULL ? NULL : strrchr(map->l_name, '/');
        if (file == NULL) continue;
        if (strncmp(file, "/libc.so.", 9) != 0 && strncmp(file, "/libc-2.", 8) != 0 &&
            strncmp(file, "/libpthread", 11) != 0)
            continue;
        void *address = read_image(map->l_addr, map->l_ld, &image) ? find_symbol(&image, name) : NULL;
        if (address != NULL) return address;
    }
    return NULL;
}

/* ---- several versions of one library: prefer the one the caller was linked with ---- */

struct object {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
};

struct caller_search {
    const char *name;
    const char *prefix;
    uintptr_t caller;
    void *first;
    struct object caller_object;
    char needed[64]; /* what the caller was linked with */
    void *preferred;
    int round;
};

static const char *base_name(const char *path) {
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return slash == NULL ? (path == NULL ? "" : path) : slash + 1;
}

static bool has_prefix(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

static int visit_for_caller(struct dl_phdr_info *info, size_t size, void *data) {
    struct caller_search *search = data;
    const ElfW(Dyn) *dynamic = NULL;
    bool holds_caller = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn) *)start;
        if (header->p_type == PT_LOAD && search->caller >= start && search->caller - start < header->p_memsz)
            holds_caller = true;
    }
    if (dynamic == NULL || dynamic == _DYNAMIC) return 0;
    if (search->round == 0) {
        const char *strings = NULL;
        if (!holds_caller) return 0;
        for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++)
            if (d->d_tag == DT_STRTAB) strings = entry_address(info->dlpi_addr, d->d_un.d_ptr);
        for (const ElfW(Dyn) *d = dynamic; strings != NULL && d->d_tag != DT_NULL; d++)
            if (d->d_tag == DT_NEEDED && has_prefix(strings + d->d_un.d_val, search->prefix))
                strncpy(search->needed, strings + d->d_un.d_val, sizeof search->needed - 1);
        return 1;
    }
    const char *name = base_name(info->dlpi_name);
    struct image image;
    if (!has_prefix(name, search->prefix) || !read_image(info->dlpi_addr, dynamic, &image)) return 0;
    void *address = find_symbol(&image, search->name);
    if (address == NULL) return 0;
    if (search->first == NULL) search->first = address;
    /* "libcudart.so.13" is needed, "libcudart.so.13.0.88" is loaded. */
    if (search->needed[0] != '\0' && has_prefix(name, search->needed)) {
        search->preferred = address;
        return 1;
    }
    return 0;
}

void *nm_next_for_caller(const char *name, const char *library_prefix, const void *caller) {
    struct caller_search search = {.name = name, .prefix = library_prefix, .caller = (uintptr_t)caller};
    dl_iterate_phdr(visit_for_caller, &search);
    search.round = 1;
    dl_iterate_phdr(visit_for_caller, &search);
    if (search.preferred != NULL) return search.preferred;
    if (search.first != NULL) return search.first;
    return nm_next(name); /* a library of another name, or another wrapper */
}

/* ---- who owns an address ---- */

struct dl_find_object_result { /* layout of struct dl_find_object (glibc 2.35 on) */
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};
static int (*find_object)(void *, struct dl_find_object_result *);

#define MAX_TOOL_DIRECTORIES 4
static char tool_directories[MAX_TOOL_DIRECTORIES][256];

static const char *const tool_names[] = {"libToolsInjection", "libcupti",     "libnvperf",        "libnsys",
                                         "libInterceptor",    "libTreeLauncher", "libcuda-injection", "libnvlog",
                                         "libnvtx_markers",   "libprofInjection"};
static const char *const driver_names[] = {"libcuda.so", "libcudart.so", "libnvidia-", "libcudadebugger"};

static enum nm_owner owner_of_path(const char *path) {
    const char *name = base_name(path);
    for (size_t i = 0; i < sizeof tool_names / sizeof *tool_names; i++)
        if (has_prefix(name, tool_names[i])) return NM_OWNER_TOOL;
    for (size_t i = 0; i < sizeof driver_names / sizeof *driver_names; i++)
        if (has_prefix(name, driver_names[i])) return NM_OWNER_DRIVER;
    for (size_t i = 0; i < MAX_TOOL_DIRECTORIES; i++) {
        const size_t length = strlen(tool_directories[i]);
        if (length > 0 && (size_t)(name - path) == length && strncmp(path, tool_directories[i], length) == 0)
            return NM_OWNER_TOOL;
    }
    return NM_OWNER_APP;
}

/* Ranges of the objects loaded at start, for glibc before 2.35, which has no lock-free look-up. */
#define MAX_RANGES 128
static struct {
    uintptr_t start, end;
    enum nm_owner owner;
} ranges[MAX_RANGES];
static size_t range_count;

static int note_range(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    for (int i = 0; i < info->dlpi_phnum && range_count < MAX_RANGES; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0) continue;
        ranges[range_count].start = info->dlpi_addr + header->p_vaddr;
        ranges[range_count].end = ranges[range_count].start + header->p_memsz;
        ranges[range_count++].owner = owner_of_path(info->dlpi_name == NULL ? "" : info->dlpi_name);
    }
    return 0;
}

enum nm_owner nm_owner_of(const void *address) {
    if (find_object != NULL) {
        struct dl_find_object_result result;
        if (find_object((void *)address, &result) != 0 || result.link_map == NULL) return NM_OWNER_APP;
        return owner_of_path(result.link_map->l_name == NULL ? "" : result.link_map->l_name);
    }
    for (size_t i = 0; i < range_count; i++)
        if ((uintptr_t)address >= ranges[i].start && (uintptr_t)address < ranges[i].end) return ranges[i].owner;
    return NM_OWNER_TOOL; /* unknown: say nothing rather than recurse into a tool */
}

static void note_tool_directory(const char *path, size_t slot) {
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    if (length > 0 && length < sizeof tool_directories[0]) memcpy(tool_directories[slot], path, length);
}

void nm_owner_start(void) {
    note_tool_directory(getenv("NVTX_INJECTION64_PATH"), 0);
    note_tool_directory(getenv("CUDA_INJECTION64_PATH"), 1);
    find_object = (int (*)(void *, struct dl_find_object_result *))nm_next("_dl_find_object");
    if (find_object == NULL) dl_iterate_phdr(note_range, NULL);
}
