"""Generated from file_system_storage_path_source.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n8gru_serving/protos/file_system_storage_path_source.proto\x12\x12'
    b'tensorflow.serving"\x9e\x08\n!FileSystemStoragePathSourceConfig\x12e\n\t'
    b'servables\x18\x05 \x03(\x0b2G.tensorflow.serving.FileSystemStoragePathSo'
    b'urceConfig.ServableToMonitorR\tservables\x12@\n\x1dfile_system_poll_'
    b'wait_seconds\x18\x03 \x01(\x03R\x19fileSystemPollWaitSeconds\x12I\n fail_if_zer'
    b'o_versions_at_startup\x18\x04 \x01(\x08B\x02\x18\x01R\x1bfailIfZeroVersionsAtStartup'
    b'\x12G\n servable_versions_always_present\x18\x06 \x01(\x08R\x1dservableVersions'
    b'AlwaysPresent\x1a\xcb\x03\n\x15ServableVersionPolicy\x12l\n\x06latest\x18d \x01(\x0b2R.te'
    b'nsorflow.serving.FileSystemStoragePathSourceConfig.ServableV'
    b'ersionPolicy.LatestH\x00R\x06latest\x12c\n\x03all\x18e \x01(\x0b2O.tensorflow.serv'
    b'ing.FileSystemStoragePathSourceConfig.ServableVersionPolicy.'
    b'AllH\x00R\x03all\x12r\n\x08specific\x18f \x01(\x0b2T.tensorflow.serving.FileSystem'
    b'StoragePathSourceConfig.ServableVersionPolicy.SpecificH\x00R\x08sp'
    b'ecific\x1a+\n\x06Latest\x12!\n\x0cnum_versions\x18\x01 \x01(\rR\x0bnumVersions\x1a\x05\n\x03All\x1a&'
    b'\n\x08Specific\x12\x1a\n\x08versions\x18\x01 \x03(\x03R\x08versionsB\x0f\n\rpolicy_choice\x1a\xe1\x01\n\x11'
    b'ServableToMonitor\x12#\n\rservable_name\x18\x01 \x01(\tR\x0cservableName\x12\x1b\n\tba'
    b'se_path\x18\x02 \x01(\tR\x08basePath\x12\x83\x01\n\x17servable_version_policy\x18\x04 \x01(\x0b2K.'
    b'tensorflow.serving.FileSystemStoragePathSourceConfig.Servabl'
    b'eVersionPolicyR\x15servableVersionPolicyJ\x04\x08\x03\x10\x04J\x04\x08\x01\x10\x02J\x04\x08\x02\x10\x03b\x06pro'
    b'to3'
)
