module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<3x5xcomplex<f32>> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<[[(1.000000e+00,2.000000e+00), (3.000000e+00,0.000000e+00)], [(0.000000e+00,0.000000e+00), (-0.000000e+00,-1.000000e+00)]]> : tensor<2x2xcomplex<f32>>
    %0 = stablehlo.slice %arg0 [0:1, 0:1] : (tensor<3x5xcomplex<f32>>) -> tensor<1x1xcomplex<f32>>
    %1 = stablehlo.reshape %0 : (tensor<1x1xcomplex<f32>>) -> tensor<complex<f32>>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<complex<f32>>) -> tensor<2x2xcomplex<f32>>
    %3 = stablehlo.multiply %cst, %2 : tensor<2x2xcomplex<f32>>
    %4 = stablehlo.real %arg0 : (tensor<3x5xcomplex<f32>>) -> tensor<3x5xf32>
    %5 = stablehlo.convert %4 : (tensor<3x5xf32>) -> tensor<3x5xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<complex<f32>>) -> tensor<3x5xcomplex<f32>>
    %7 = stablehlo.add %5, %6 : tensor<3x5xcomplex<f32>>
    return %3, %7 : tensor<2x2xcomplex<f32>>, tensor<3x5xcomplex<f32>>
  }
}
