# Run at every build: writes OUTPUT from INPUT with the commit that SOURCE is at, only when that has changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(COMMIT unknown)
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
