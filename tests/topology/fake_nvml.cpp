// A library that behaves as NVIDIA's management library, for machines that have none. Built several times,
// each time as another machine:
//
// - FAKE_MESH: 4 GPUs, each joined to each other by 2 NVLinks of version 2, with several ailments; knows no
// fields
// - FAKE_SWITCH: 8 GPUs with 18 NVLinks to NVSwitches, answered by fields only, called version 5 as some
// drivers do
// - FAKE_POWER: 2 GPUs joined to each other and to a POWER processor by 3 NVLinks each; an old driver, which
// lacks
//   functions
// - FAKE_GRACE: 1 GPU on the C2C links of a Grace processor; refuses some calls
// - FAKE_BRIDGED: 4 cards; a bridge of 4 of their 6 NVLinks joins the first two
// - FAKE_MIG: FAKE_SWITCH, with the last two in MIG mode and the others in order
// - FAKE_LOST: 2 GPUs, one of which has fallen off the bus
// - FAKE_CRASH: crashes when asked for a GPU's memory
// - FAKE_HANG: never returns from its initialisation
// - FAKE_UNLOADED: whose driver is not loaded
//
// The declarations are made from NVIDIA's documentation a second time, apart from those of nvml_library.cpp.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#if defined(FAKE_MIG)
#define FAKE_SWITCH
#endif

#if defined(FAKE_SWITCH)
constexpr unsigned kGpus = 8;
#elif defined(FAKE_POWER) || defined(FAKE_LOST)
constexpr unsigned kGpus = 2;
#elif defined(FAKE_GRACE)
constexpr unsigned kGpus = 1;
#else
constexpr unsigned kGpus = 4;
#endif

constexpr int kOk = 0;
constexpr int kNotSupported = 3;

struct nvmlDevice_st {
  unsigned index;
};
using nvmlDevice_t = nvmlDevice_st*;

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};

struct nvmlMemory_t {
  unsigned long long total, free, used;
};

struct nvmlFieldValue_t {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  unsigned valueType;
  int nvmlReturn;
  union {
    double dVal;
    unsigned uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    long long sllVal;
  } value;
};

static nvmlDevice_st devices[kGpus];

static void fill_pci(nvmlPciInfo_t* pci, unsigned bus, unsigned vendor) {
  std::memset(pci, 0, sizeof *pci);
  pci->bus = bus;
  pci->pciDeviceId = 0x15f90000u | vendor;
  std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", bus);
}

/// Which GPU the link of a mesh leads to: two links to each other one, in order.
[[maybe_unused]] static unsigned mesh_peer(unsigned gpu, unsigned link) {
  const unsigned other = link / 2;
  return other < gpu ? other : other + 1;
}

extern "C" {

int nvmlInit_v2() {
#if defined(FAKE_HANG)
  while (true) pause();
#elif defined(FAKE_UNLOADED)
  return 9;  // NVML_ERROR_DRIVER_NOT_LOADED
#endif
  for (unsigned i = 0; i < kGpus; ++i) devices[i].index = i;
  return kOk;
}

int nvmlShutdown() { return kOk; }

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "535.104.05");
  return kOk;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kGpus;
  return kOk;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
#if defined(FAKE_LOST)
  if (index == 1) return 15;  // NVML_ERROR_GPU_IS_LOST
#endif
  *device = &devices[index];
  return kOk;
}

int nvmlDeviceGetName(nvmlDevice_t, char* name, unsigned length) {
#if defined(FAKE_BRIDGED)
  std::snprintf(name, length, "NVIDIA RTX A6000");
#else
  std::snprintf(name, length, "Tesla Fake-SXM2-16GB");
#endif
  return kOk;
}

int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  fill_pci(pci, 0x10 + device->index, 0x10de);
  return kOk;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t* memory) {
#if defined(FAKE_CRASH)
  memory = nullptr;
  *const_cast<volatile unsigned long long*>(&memory->total) = 1;
#endif
  *memory = {16ull << 30, 16ull << 30, 0};
  return kOk;
}

int nvmlDeviceGetMemoryBusWidth(nvmlDevice_t, unsigned* bits) {
  *bits = 4096;
  return kOk;
}

int nvmlDeviceGetMaxClockInfo(nvmlDevice_t, int clock, unsigned* megahertz) {
  if (clock != 1 && clock != 2) return 2;
  *megahertz = clock == 1 ? 1530 : 877;
  return kOk;
}

// What a watch asks: the last GPU's clocks and power are held down by somebody; the second is hot, and has
// had an Xid.

int nvmlDeviceGetClockInfo(nvmlDevice_t device, int clock, unsigned* megahertz) {
  if (clock != 1) return 2;
  *megahertz = device->index == 0 ? 135 : 1530;
  return kOk;
}

int nvmlDeviceGetApplicationsClock(nvmlDevice_t device, int clock, unsigned* megahertz) {
  if (clock != 0) return 2;
  *megahertz = device->index == 3 ? 900 : 1312;
  return kOk;
}

int nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t, int clock, unsigned* megahertz) {
  if (clock != 0) return 2;
  *megahertz = 1312;
  return kOk;
}

int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned* celsius) {
  if (sensor != 0) return 2;
  *celsius = device->index == 1 ? 91 : 40;
  return kOk;
}

int nvmlDeviceGetTemperatureThreshold(nvmlDevice_t, int threshold, unsigned* celsius) {
  if (threshold != 1) return 2;
  *celsius = 87;
  return kOk;
}

int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts) {
  *milliwatts = device->index == 3 ? 150'000 : 300'000;
  return kOk;
}

int nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t, unsigned* milliwatts) {
  *milliwatts = 300'000;
  return kOk;
}

int nvmlDeviceGetRetiredPages(nvmlDevice_t device, int cause, unsigned* count, unsigned long long*) {
  *count = device->index == 2 && cause == 1 ? 2 : 0;
  return *count == 0 ? kOk : 7;  // NVML_ERROR_INSUFFICIENT_SIZE
}

struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType, eventData;
  unsigned gpuInstanceId, computeInstanceId;
};

static bool is_registered[kGpus];

int nvmlEventSetCreate(void** set) {
  *set = is_registered;
  return kOk;
}

int nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, void* set) {
  if (types != 8 || set != is_registered) return 2;
  is_registered[device->index] = true;
  return kOk;
}

int nvmlEventSetWait_v2(void* set, nvmlEventData_t* data, unsigned timeout) {
  static int told = 0;
  if (set != is_registered || timeout != 0 || kGpus < 2 || !is_registered[1 % kGpus] || told == 2) return 10;
  *data = {&devices[1 % kGpus], 8, told++ == 0 ? 79ull : 31ull, 0, 0};
  return kOk;
}

int nvmlDeviceGetFieldValues([[maybe_unused]] nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  for (int i = 0; i < count; ++i) {
    nvmlFieldValue_t& value = values[i];
    value.valueType = 1;
    value.nvmlReturn = kNotSupported;
    [[maybe_unused]] const auto answer = [&value](unsigned number) {
      value.nvmlReturn = kOk;
      value.value.uiVal = number;
    };
#if defined(FAKE_SWITCH)
    if (value.scopeId < 18) {
      if (value.fieldId == 164) answer(26562);
      // Every other link sleeps, and one is inactive.
      if (value.fieldId == 165) answer(value.scopeId % 2 == 0 ? 1 : 2);
      if (value.fieldId == 165 && device->index == 5 && value.scopeId == 7) answer(0);
#if defined(FAKE_MIG)
      if (value.fieldId == 165 && device->index == 7) answer(0);
#endif
      if (value.fieldId == 166) answer(7);
    }
#elif defined(FAKE_GRACE)
    if (value.fieldId == 170) answer(10);
    if (value.fieldId == 171) answer(1);
    if (value.fieldId == 172) answer(45000);
#elif defined(FAKE_MESH)
    if (value.fieldId == 90) answer(25781);
#endif
  }
  return kOk;
}

int nvmlDeviceGetNvLinkState([[maybe_unused]] nvmlDevice_t device, [[maybe_unused]] unsigned link,
                             [[maybe_unused]] unsigned* active) {
#if defined(FAKE_MESH) || defined(FAKE_POWER)
  if (link >= 6) return 2;
  *active = 1;
#if defined(FAKE_MESH)
  if (device->index == 3 && link == 5) *active = 0;
#endif
  return kOk;
#elif defined(FAKE_BRIDGED)
  if (link >= 6) return 2;
  *active = device->index < 2 && link < 4 ? 1 : 0;
  return kOk;
#else
  return kNotSupported;
#endif
}

int nvmlDeviceGetNvLinkVersion(nvmlDevice_t, unsigned link, unsigned* version) {
  if (link >= 6) return 2;
  *version = 2;
  return kOk;
}

#if !defined(FAKE_POWER)
int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t, unsigned, unsigned* type) {
#if defined(FAKE_SWITCH)
  *type = 2;
#else
  *type = 0;
#endif
  return kOk;
}

int nvmlDeviceGetCurrentClocksEventReasons([[maybe_unused]] nvmlDevice_t device,
                                           [[maybe_unused]] unsigned long long* reasons) {
#if defined(FAKE_GRACE)
  return 4;  // NVML_ERROR_NO_PERMISSION
#else
  constexpr unsigned long long kReasons[] = {0x1, 0x48, 0x0, 0x4};
  *reasons = kReasons[device->index % 4];
  return kOk;
#endif
}
#endif

int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t, unsigned long long* reasons) {
  *reasons = 0x80;
  return kOk;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2([[maybe_unused]] nvmlDevice_t device, [[maybe_unused]] unsigned link,
                                        nvmlPciInfo_t* pci) {
#if defined(FAKE_SWITCH)
  fill_pci(pci, 0xff, 0x10de);
#elif defined(FAKE_POWER)
  if (link < 3)
    fill_pci(pci, 0x10 + (1 - device->index), 0x10de);
  else
    fill_pci(pci, 0, 0x1014);
#elif defined(FAKE_BRIDGED)
  fill_pci(pci, 0x10 + (1 - device->index), 0x10de);
#else
  fill_pci(pci, 0x10 + mesh_peer(device->index, link), 0x10de);
#endif
  return kOk;
}

int nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter, unsigned long long* errors) {
  if (type != 1 || counter != 0) return 2;
  *errors = device->index == 2 ? 3 : 0;
  return kOk;
}

int nvmlDeviceGetEccMode(nvmlDevice_t device, int* current, int* pending) {
  *current = 1;
  *pending = device->index == 1 ? 0 : 1;
  return kOk;
}

int nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t, int*) { return kNotSupported; }

int nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  *corrected = 0;
  *uncorrected = device->index == 2 ? 1 : 0;
  *pending = *uncorrected;
  *failed = 0;
  return kOk;
}

#if !defined(FAKE_POWER)
int nvmlDeviceGetMigMode([[maybe_unused]] nvmlDevice_t device, unsigned* current, unsigned* pending) {
#if defined(FAKE_MIG)
  *current = device->index >= 6 ? 1 : 0;
  *pending = 0;
  return kOk;
#else
  *current = *pending = 1;
  return kNotSupported;
#endif
}
#endif

int nvmlDeviceGetP2PStatus([[maybe_unused]] nvmlDevice_t a, [[maybe_unused]] nvmlDevice_t b,
                           [[maybe_unused]] int capability, int* status) {
  *status = 0;
#if defined(FAKE_MESH)
  if (capability == 2 && a->index + b->index == 3 && a->index * b->index == 0) *status = 4;
#elif defined(FAKE_MIG)
  if (capability == 2 && (a->index >= 6 || b->index >= 6)) *status = 5;
#elif defined(FAKE_SWITCH)
  if (capability == 2) *status = 5;
#endif
  return kOk;
}

}  // extern "C"
