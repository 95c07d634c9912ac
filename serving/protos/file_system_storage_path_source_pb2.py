"""Generated from file_system_storage_path_source.proto by serving.protos.regenerate: do not edit."""

from serving.protos import pool

pool.define(
    globals(),
    b'\n4serving/protos/file_system_storage_path_source.proto\x12\x12tens'
    b'orflow.serving"\x9e\x08\n!FileSystemStoragePathSourceConfig\x12e\n\tserv'
    b'ables\x18\x05 \x03(\x0b2G.tensorflow.serving.FileSystemStoragePathSource'
    b'Config.ServableToMonitorR\tservables\x12@\n\x1dfile_system_poll_wait'
    b'_seconds\x18\x03 \x01(\x03R\x19fileSystemPollWaitSeconds\x12I\n fail_if_zero_ve'
    b'rsions_at_startup\x18\x04 \x01(\x08B\x02\x18\x01R\x1bfailIfZeroVersionsAtStartup\x12G\n '
    b'servable_versions_always_present\x18\x06 \x01(\x08R\x1dservableVersionsAlwa'
    b'ysPresent\x1a\xcb\x03\n\x15ServableVersionPolicy\x12l\n\x06latest\x18d \x01(\x0b2R.tensor'
    b'flow.serving.FileSystemStoragePathSourceConfig.ServableVersi'
    b'onPolicy.LatestH\x00R\x06latest\x12c\n\x03all\x18e \x01(\x0b2O.tensorflow.serving.'
    b'FileSystemStoragePathSourceConfig.ServableVersionPolicy.AllH'
    b'\x00R\x03all\x12r\n\x08specific\x18f \x01(\x0b2T.tensorflow.serving.FileSystemStor'
    b'agePathSourceConfig.ServableVersionPolicy.SpecificH\x00R\x08specif'
    b'ic\x1a+\n\x06Latest\x12!\n\x0cnum_versions\x18\x01 \x01(\rR\x0bnumVersions\x1a\x05\n\x03All\x1a&\n\x08Sp'
    b'ecific\x12\x1a\n\x08versions\x18\x01 \x03(\x03R\x08versionsB\x0f\n\rpolicy_choice\x1a\xe1\x01\n\x11Serv'
    b'ableToMonitor\x12#\n\rservable_name\x18\x01 \x01(\tR\x0cservableName\x12\x1b\n\tbase_p'
    b'ath\x18\x02 \x01(\tR\x08basePath\x12\x83\x01\n\x17servable_version_policy\x18\x04 \x01(\x0b2K.tens'
    b'orflow.serving.FileSystemStoragePathSourceConfig.ServableVer'
    b'sionPolicyR\x15servableVersionPolicyJ\x04\x08\x03\x10\x04J\x04\x08\x01\x10\x02J\x04\x08\x02\x10\x03b\x06proto3'
)
