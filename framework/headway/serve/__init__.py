"""The interface over HTTP, of a process of its own: in the daemon's, it would take time from the cycle.

 browser, client, script
        |  HTTP
 app        which resources there are (resources), who asks (callers)
        |  a request of headway.service.protocol, in the asking user's name
 source     the daemon, or a picture of the cluster that is kept beside it

What users of the local socket and users of this interface are told is the same: the requests and the reports
are those of the socket. This process decides who asks; what that user may know is decided where the answer is
made.
"""
