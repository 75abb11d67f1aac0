! A program by the interface that is compiled in: mpif.h, `use mpi` or `use mpi_f08`. It makes two allreduces, a reduce-scatter and
! an allgather, each also in place, and prints how many results are wrong.
program collectives
#if defined(USE_mpi_f08)
  use mpi_f08
#elif defined(USE_mpi)
  use mpi
#endif
  implicit none
#if !defined(USE_mpi_f08) && !defined(USE_mpi)
  include 'mpif.h'
#endif
  integer, parameter :: n = 30000
  integer :: rank, ranks, ierror, i, wrong
  integer, allocatable :: whole(:), all(:)
  double precision, allocatable :: input(:), output(:)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  allocate (whole(n), all(n * ranks), input(n * ranks), output(n * ranks))
  wrong = 0

  input = [(dble(rank + i), i = 1, n * ranks)]
  call MPI_Allreduce(input, output, n * ranks, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  wrong = wrong + count(output /= [(dble(ranks * i + ranks * (ranks - 1) / 2), i = 1, n * ranks)]) + abs(ierror)
  output = input
  call MPI_Allreduce(MPI_IN_PLACE, output, n * ranks, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierror)
  wrong = wrong + count(output /= [(dble(ranks - 1 + i), i = 1, n * ranks)]) + abs(ierror)

  output = 0
  call MPI_Reduce_scatter_block(input, output, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  wrong = wrong + count(output(1:n) /= [(dble(ranks * (rank * n + i) + ranks * (ranks - 1) / 2), i = 1, n)]) + abs(ierror)
  call MPI_Reduce_scatter_block(MPI_IN_PLACE, input, n, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD, ierror)
  wrong = wrong + count(input(1:n) /= [(dble(rank * n + i), i = 1, n)]) + abs(ierror)

  whole = [(rank * n + i, i = 1, n)]
  all = 0
  call MPI_Allgather(whole, n, MPI_INTEGER, all, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  wrong = wrong + count(all /= [(i, i = 1, n * ranks)]) + abs(ierror)
  all = 0
  all(rank * n + 1:rank * n + n) = whole
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  wrong = wrong + count(all /= [(i, i = 1, n * ranks)]) + abs(ierror)

  print '(a,i0,a,i0,a)', 'rank ', rank, ': ', wrong, ' wrong'
  call MPI_Finalize(ierror)
end program
