"""Spack's recipe. It builds the checkout that it is started in:

    spack repo add scripts/packaging/spack_repo/polyring
    spack dev-build polyring@0.1.0
"""

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Polyring(CMakePackage, CudaPackage):
    """Measures how well GPU clusters scale: topology, allreduces side by side, predicted scaling."""

    license("Apache-2.0")

    version("0.1.0")

    generator("ninja")
    variant("plots", default=True, description="Draw charts and pages of results, by Python")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("python", type="build")  # writes the man pages

    depends_on("mpi")
    depends_on("hwloc@2.9:2")
    depends_on("fmt@9:10")
    depends_on("cli11@2.1:2")
    depends_on("nlohmann-json@3.11:")
    depends_on("pugixml@1.13:")
    depends_on("tomlplusplus@3.4:")
    depends_on("eigen@3.4")
    depends_on("cuda@12:", when="+cuda")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs' compute capability, as cuda_arch=90")
    for arch in CudaPackage.cuda_arch_values:  # which nccl, too, must be told
        depends_on(f"nccl +cuda cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")

    depends_on("python", type="run", when="+plots")
    depends_on("py-matplotlib", type=("build", "run"), when="+plots")
    depends_on("py-jinja2", type=("build", "run"), when="+plots")

    def cmake_args(self):
        args = [
            self.define("POLYRING_TESTS", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_Gloo", True),
            self.define_from_variant("POLYRING_WITH_CUDA", "cuda"),
        ]
        if self.spec.satisfies("+plots"):
            args.append(self.define("POLYRING_PYTHON", self.spec["python"].command.path))
        if self.spec.satisfies("+cuda"):
            args.append(self.define("POLYRING_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
            args.append(self.define("CUDAToolkit_ROOT", self.spec["cuda"].prefix))
            args.append(self.define("POLYRING_NCCL_INCLUDE", self.spec["nccl"].prefix.include))
        return args
